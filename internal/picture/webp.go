package picture

import (
	"image"
	"io"

	"golang.org/x/image/webp"
)

// decodeWebP decodes a WebP. In a lossy one luma goes from 16 to 235 and chroma from 16 to 240 (RFC 6386, 9.2, after BT.601), which
// the decoder hands on as if they went from 0 to 255: black would be grey.
func decodeWebP(r io.Reader) (image.Image, error) {
	m, err := webp.Decode(r)
	switch y := m.(type) {
	case *image.YCbCr:
		widen(y)
	case *image.NYCbCrA:
		widen(&y.YCbCr)
	}
	return m, err
}

func widen(m *image.YCbCr) {
	var luma, chroma [256]uint8
	for i := range 256 {
		luma[i] = uint8(min(max((i-16)*255/219, 0), 255))
		chroma[i] = uint8(min(max((i-128)*255/224+128, 0), 255))
	}
	for i, v := range m.Y {
		m.Y[i] = luma[v]
	}
	for i, v := range m.Cb {
		m.Cb[i] = chroma[v]
	}
	for i, v := range m.Cr {
		m.Cr[i] = chroma[v]
	}
}
