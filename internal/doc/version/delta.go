package version

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"

	"github.com/centrifugal/fdelta"

	"cairn/internal/doc"
	"cairn/internal/fault"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Delta gives what turns one version's bytes into the other's; its size grows with what differs, not with the versions. The form:
// CRC-32C of b (4 bytes, big-endian), how many bytes a and b begin with and end with in common (two unsigned varints), and for
// what is between a Fossil delta (https://fossil-scm.org/home/doc/tip/www/delta_format.wiki).
func Delta(a, b []byte) []byte {
	head := alike(a, b)
	tail := alikeEnd(a[head:], b[head:])
	out := binary.BigEndian.AppendUint32(make([]byte, 0, 256), crc32.Checksum(b, castagnoli))
	out = binary.AppendUvarint(out, uint64(head))
	out = binary.AppendUvarint(out, uint64(tail))
	return fdelta.AppendCreate(out, a[head:len(a)-tail], b[head:len(b)-tail])
}

// ApplyDelta gives b back from a and Delta(a, b). A delta that is damaged or was made for other bytes is refused.
func ApplyDelta(a, delta []byte) ([]byte, error) {
	broken := fault.New(fault.Internal, "a stored change doesn't fit the version it was made for")
	if len(delta) < 6 {
		return nil, broken
	}
	sum, rest := binary.BigEndian.Uint32(delta), delta[4:]
	head, n := binary.Uvarint(rest)
	tail, m := binary.Uvarint(rest[max(n, 0):])
	if n <= 0 || m <= 0 || head > uint64(len(a)) || tail > uint64(len(a))-head {
		return nil, broken
	}
	rest = rest[n+m:]
	size, err := fdelta.OutputSize(rest)
	if err != nil || size > doc.MaxJSON {
		return nil, broken
	}
	b := append(make([]byte, 0, int(head)+size+int(tail)), a[:head]...)
	if b, err = fdelta.AppendApply(b, a[head:len(a)-int(tail)], rest); err != nil {
		return nil, broken
	}
	b = append(b, a[len(a)-int(tail):]...)
	if crc32.Checksum(b, castagnoli) != sum {
		return nil, broken
	}
	return b, nil
}

// alike counts the bytes that two texts begin with in common.
func alike(a, b []byte) int {
	const step = 4096
	n, most := 0, min(len(a), len(b))
	for n+step <= most && bytes.Equal(a[n:n+step], b[n:n+step]) {
		n += step
	}
	for n < most && a[n] == b[n] {
		n++
	}
	return n
}

// alikeEnd counts the bytes that two texts end with in common.
func alikeEnd(a, b []byte) int {
	const step = 4096
	n, most := 0, min(len(a), len(b))
	for n+step <= most && bytes.Equal(a[len(a)-n-step:len(a)-n], b[len(b)-n-step:len(b)-n]) {
		n += step
	}
	for n < most && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}
