// Package picture tells what a picture's bytes are and makes small ones of it: of JPEG, PNG, GIF (its first frame) and WebP. It
// trusts no header: what decoding would take is worked out first, and refused where it is too much.
package picture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"slices"
	"time"

	"github.com/bep/imagemeta"
	"golang.org/x/image/webp"
)

// Bounds of what is decoded.
const (
	maxBytes = 256 << 20        // of memory that a decoded picture may take
	maxTime  = 30 * time.Second // that decoding may take
)

// ErrTooLarge says that a picture would take more memory than is given to one.
var ErrTooLarge = errors.New("the picture is too large to be made smaller")

// format is how a kind of picture is read.
type format struct {
	config func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error)
	meta   imagemeta.ImageFormat // 0 = no orientation is in it
}

var formats = map[string]format{
	"image/jpeg": {jpeg.DecodeConfig, jpeg.Decode, imagemeta.JPEG},
	"image/png":  {png.DecodeConfig, png.Decode, imagemeta.PNG},
	"image/gif":  {gif.DecodeConfig, gif.Decode, 0},
	"image/webp": {webp.DecodeConfig, decodeWebP, imagemeta.WebP},
}

// Is tells whether a media type is one of those that this package reads.
func Is(mediaType string) bool { return formats[mediaType].decode != nil }

// Info is what a picture's header says.
type Info struct {
	Width, Height int // in pixels, as it is to be shown
	turn          int // how to turn it for that: EXIF's Orientation, 1 to 8
	stored        image.Rectangle
	bytes         int64 // that it takes when decoded, at most
}

// Look reads a picture's header; ok is false where it isn't one of the type.
func Look(r io.ReadSeeker, mediaType string) (info Info, ok bool) {
	f := formats[mediaType]
	if f.decode == nil || rewind(r) != nil {
		return info, false
	}
	c, err := f.config(r)
	if err != nil || c.Width <= 0 || c.Height <= 0 {
		return info, false
	}
	info = Info{Width: c.Width, Height: c.Height, turn: 1, stored: image.Rect(0, 0, c.Width, c.Height)}
	perPixel := memory(c.ColorModel)
	switch mediaType {
	case "image/jpeg":
		if rewind(r) != nil {
			return info, false
		}
		perPixel = jpegMemory(r)
	case "image/png": // a pass of an interlaced one stands beside it
		perPixel *= 1.5
	case "image/webp":
		perPixel *= 2
	}
	info.bytes = int64(perPixel * float64(c.Width) * float64(c.Height))
	if f.meta != 0 {
		info.turn = orientation(r, f.meta)
	}
	if info.turn >= 5 {
		info.Width, info.Height = info.Height, info.Width
	}
	return info, true
}

func rewind(r io.Seeker) error {
	_, err := r.Seek(0, io.SeekStart)
	return err
}

// memory gives the bytes that a pixel takes.
func memory(m color.Model) float64 {
	switch m {
	case color.GrayModel, color.AlphaModel:
		return 1
	case color.Gray16Model, color.Alpha16Model:
		return 2
	case color.YCbCrModel:
		return 3
	case color.RGBA64Model, color.NRGBA64Model:
		return 8
	}
	if _, palette := m.(color.Palette); palette {
		return 1
	}
	return 4
}

// orientation gives EXIF's Orientation, 1 where none is said.
func orientation(r io.ReadSeeker, f imagemeta.ImageFormat) int {
	turn := 1
	if rewind(r) != nil {
		return turn
	}
	_, _ = imagemeta.Decode(imagemeta.Options{R: r, ImageFormat: f, Sources: imagemeta.EXIF, LimitNumTags: 500, LimitTagSize: 1000, Timeout: 5 * time.Second,
		ShouldHandleTag: func(t imagemeta.TagInfo) bool { return t.Tag == "Orientation" && t.Namespace == "IFD0" },
		HandleTag: func(t imagemeta.TagInfo) error {
			if v, ok := t.Value.(uint16); ok && v >= 1 && v <= 8 {
				turn = int(v)
			}
			return imagemeta.ErrStopWalking
		}}) // metadata that can't be read says nothing
	return turn
}

// Small is a small picture that was made of another.
type Small struct {
	Longest       int // the side that was asked for
	Width, Height int
	MediaType     string
	Bytes         []byte
}

// Fit gives the size of a picture whose longer side is to have so many pixels at most. None grows.
func Fit(width, height, longest int) (w, h int) {
	most := max(width, height)
	if most <= longest {
		return width, height
	}
	scale := func(n int) int { return max(1, int((int64(n)*int64(longest)+int64(most)/2)/int64(most))) }
	return scale(width), scale(height)
}

// Shrink makes small pictures, one for each longest side, the largest first. What is said about the picture beside its pixels (where
// it was taken, by whom) isn't in them.
func Shrink(ctx context.Context, r io.ReadSeeker, mediaType string, longest ...int) ([]Small, error) {
	info, ok := Look(r, mediaType)
	if !ok {
		return nil, fmt.Errorf("no picture of the type %s", mediaType)
	}
	if info.bytes > maxBytes {
		return nil, ErrTooLarge
	}
	if err := rewind(r); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	src, err := formats[mediaType].decode(until{ctx, r})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(longest, func(a, b int) int { return b - a })
	var list []Small
	var now *image.RGBA
	for i, n := range longest {
		w, h := Fit(info.Width, info.Height, n)
		if i == 0 {
			sw, sh := w, h
			if info.turn >= 5 {
				sw, sh = h, w
			}
			now = turned(resize(src, info.stored, sw, sh), info.turn)
			src = nil // its memory is free for the rest
		} else {
			now = resize(now, now.Bounds(), w, h)
		}
		s := Small{Longest: n, Width: w, Height: h}
		if s.MediaType, s.Bytes, err = encode(now); err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

// until reads as long as ctx lasts: decoders hear of nothing else.
type until struct {
	ctx context.Context
	io.Reader
}

func (u until) Read(b []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.Reader.Read(b)
}

func encode(m *image.RGBA) (mediaType string, b []byte, err error) {
	var out bytes.Buffer
	if m.Opaque() {
		err = jpeg.Encode(&out, m, &jpeg.Options{Quality: 82})
		return "image/jpeg", out.Bytes(), err
	}
	err = png.Encode(&out, m)
	return "image/png", out.Bytes(), err
}
