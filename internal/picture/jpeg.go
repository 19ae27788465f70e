package picture

import (
	"bufio"
	"io"
)

// jpegMemory gives the bytes a pixel that decoding a JPEG takes: a byte a sample, and where it is progressive four more for its
// coefficient, which all are kept until the end. Where the header can't be read it gives the most there can be.
func jpegMemory(r io.Reader) float64 {
	const most = 4 * 5
	b := bufio.NewReader(r)
	next := func() int {
		c, err := b.ReadByte()
		if err != nil {
			return -1
		}
		return int(c)
	}
	if next() != 0xff || next() != 0xd8 {
		return most
	}
	for {
		c := next()
		for c != 0xff { // what stands between segments is passed over, as the decoder does
			if c < 0 {
				return most
			}
			c = next()
		}
		for c == 0xff {
			c = next()
		}
		if c <= 0 || c >= 0xd0 && c <= 0xd9 || c == 1 { // markers without a length
			if c < 0 || c == 0xd9 {
				return most
			}
			continue
		}
		length := next()<<8 | next()
		if length < 2 {
			return most
		}
		if c == 0xc0 || c == 0xc1 || c == 0xc2 {
			return frameMemory(b, c == 0xc2)
		}
		if _, err := b.Discard(length - 2); err != nil {
			return most
		}
	}
}

// frameMemory reads the body of a frame header (ITU T.81, B.2.2) after its length.
func frameMemory(r io.Reader, progressive bool) float64 {
	const most = 4 * 5
	var head [6]byte
	if _, err := io.ReadFull(r, head[:]); err != nil || head[5] < 1 || head[5] > 4 {
		return most
	}
	components := make([]byte, 3*int(head[5]))
	if _, err := io.ReadFull(r, components); err != nil {
		return most
	}
	sum, h, v := 0, 0, 0
	for i := 1; i < len(components); i += 3 {
		ch, cv := int(components[i]>>4), int(components[i]&15)
		sum += ch * cv
		h, v = max(h, ch), max(v, cv)
	}
	if sum == 0 {
		return most
	}
	samples := float64(sum) / float64(h*v)
	if len(components) == 12 {
		samples += 4 // the four are put together in another picture
	}
	if progressive {
		return samples * 5
	}
	return samples
}
