package files

import (
	"mime/multipart"
	"time"
)

// PartName is how the name of a part's file is read.
func PartName(p *multipart.Part) string { return partName(p) }

// SetSilence sets how long a client may send nothing, and gives what takes that back.
func SetSilence(d time.Duration) (back func()) {
	was := silence
	silence = d
	return func() { silence = was }
}
