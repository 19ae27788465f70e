package picture_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"cairn/internal/picture"
)

var (
	red, green, blue, white = color.RGBA{255, 0, 0, 255}, color.RGBA{0, 160, 0, 255}, color.RGBA{0, 0, 255, 255}, color.RGBA{255, 255, 255, 255}
	names                   = map[string]color.RGBA{"TL": red, "TR": green, "BL": blue, "BR": white}
)

// quarters is a picture of four colours.
func quarters(w, h int) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for name, c := range names {
		r := image.Rect(0, 0, w/2, h/2)
		if name[1] == 'R' {
			r = r.Add(image.Pt(w/2, 0))
		}
		if name[0] == 'B' {
			r = r.Add(image.Pt(0, h/2))
		}
		draw.Draw(m, r, image.NewUniform(c), image.Point{}, draw.Src)
	}
	return m
}

func encoded(t testing.TB, mediaType string, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	var err error
	switch mediaType {
	case "image/jpeg":
		err = jpeg.Encode(&b, m, &jpeg.Options{Quality: 95})
	case "image/png":
		err = png.Encode(&b, m)
	case "image/gif":
		err = gif.Encode(&b, m, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// oriented puts EXIF's Orientation into a JPEG, among other tags.
func oriented(b []byte, turn uint16, order binary.AppendByteOrder) []byte {
	mark := "II"
	if order == binary.AppendByteOrder(binary.BigEndian) {
		mark = "MM"
	}
	tiff := order.AppendUint32(order.AppendUint16([]byte(mark), 42), 8)
	tiff = order.AppendUint16(tiff, 2)
	tiff = append(order.AppendUint32(order.AppendUint16(order.AppendUint16(tiff, 0x010f), 2), 4), "cam\x00"...)                   // Make
	tiff = append(order.AppendUint16(order.AppendUint32(order.AppendUint16(order.AppendUint16(tiff, 0x0112), 3), 1), turn), 0, 0) // Orientation
	tiff = order.AppendUint32(tiff, 0)
	body := append([]byte("Exif\x00\x00"), tiff...)
	out := append([]byte{0xff, 0xd8, 0xff, 0xe1}, binary.BigEndian.AppendUint16(nil, uint16(len(body)+2))...)
	return append(append(out, body...), b[2:]...)
}

func decoded(t *testing.T, s picture.Small) image.Image {
	t.Helper()
	m, format, err := image.Decode(bytes.NewReader(s.Bytes))
	if err != nil || "image/"+format != s.MediaType || m.Bounds().Dx() != s.Width || m.Bounds().Dy() != s.Height {
		t.Fatalf("%d × %d, %s: %v %s %v", s.Width, s.Height, s.MediaType, m, format, err)
	}
	return m
}

func near(a, b color.Color) bool {
	r1, g1, b1, a1 := a.RGBA()
	r2, g2, b2, a2 := b.RGBA()
	for _, d := range [][2]uint32{{r1, r2}, {g1, g2}, {b1, b2}, {a1, a2}} {
		if max(d[0], d[1])-min(d[0], d[1]) > 12<<8 {
			return false
		}
	}
	return true
}

// corners tells which colour is where.
func corners(m image.Image) string {
	w, h := m.Bounds().Dx(), m.Bounds().Dy()
	var list []string
	for _, p := range []image.Point{{w / 4, h / 4}, {3 * w / 4, h / 4}, {w / 4, 3 * h / 4}, {3 * w / 4, 3 * h / 4}} {
		found := "?"
		for name, c := range names {
			if near(m.At(p.X, p.Y), c) {
				found = name
			}
		}
		list = append(list, found)
	}
	return strings.Join(list, " ")
}

func TestPicturesAreTurnedAsTheCameraSays(t *testing.T) {
	for turn, want := range map[uint16]string{
		1: "TL TR BL BR", 2: "TR TL BR BL", 3: "BR BL TR TL", 4: "BL BR TL TR", 5: "TL BL TR BR", 6: "BL TL BR TR", 7: "BR TR BL TL", 8: "TR BR TL BL", 0: "TL TR BL BR", 9: "TL TR BL BR",
	} {
		for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
			b := oriented(encoded(t, "image/jpeg", quarters(640, 320)), turn, order)
			w, h := 640, 320
			if turn >= 5 && turn <= 8 {
				w, h = h, w
			}
			info, ok := picture.Look(bytes.NewReader(b), "image/jpeg")
			if !ok || info.Width != w || info.Height != h {
				t.Errorf("%d: %+v, %t", turn, info, ok)
			}
			list, err := picture.Shrink(context.Background(), bytes.NewReader(b), "image/jpeg", 100, 200, 1000)
			if err != nil || len(list) != 3 || list[0].Longest != 1000 || list[0].Width != w || list[2].Longest != 100 || max(list[2].Width, list[2].Height) != 100 {
				t.Fatalf("%d: %v %+v", turn, err, list)
			}
			for _, s := range list {
				if got := corners(decoded(t, s)); got != want {
					t.Errorf("%d at %d: %s, want %s", turn, s.Longest, got, want)
				}
				if bytes.Contains(s.Bytes, []byte("Exif")) {
					t.Error("what the camera said is in the thumbnail")
				}
			}
		}
	}
}

func file(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestEveryKindIsRead(t *testing.T) {
	// A GIF whose first frame covers a part, and which goes on.
	frame := image.NewPaletted(image.Rect(20, 0, 40, 20), color.Palette{color.Transparent, blue})
	draw.Draw(frame, frame.Rect, image.NewUniform(blue), image.Point{}, draw.Src)
	second := image.NewPaletted(image.Rect(0, 0, 40, 20), color.Palette{red})
	var moving bytes.Buffer
	if err := gif.EncodeAll(&moving, &gif.GIF{Image: []*image.Paletted{frame, second}, Delay: []int{1, 1}, Config: image.Config{Width: 40, Height: 20}}); err != nil {
		t.Fatal(err)
	}
	clear := image.NewNRGBA(image.Rect(0, 0, 40, 20))
	draw.Draw(clear, image.Rect(20, 0, 40, 20), image.NewUniform(blue), image.Point{}, draw.Src)
	deep := image.NewNRGBA64(image.Rect(0, 0, 40, 20))
	draw.Draw(deep, deep.Rect, image.NewUniform(red), image.Point{}, draw.Src)
	draw.Draw(deep, image.Rect(20, 0, 40, 20), image.NewUniform(blue), image.Point{}, draw.Src)
	for name, c := range map[string]struct {
		mediaType   string
		b           []byte
		left, right color.Color
		made        string
	}{
		"lossy WebP":       {"image/webp", file(t, "lossy.webp"), red, blue, "image/jpeg"},
		"lossless WebP":    {"image/webp", file(t, "lossless.webp"), red, blue, "image/jpeg"},
		"progressive JPEG": {"image/jpeg", file(t, "progressive.jpg"), red, blue, "image/jpeg"},
		"moving GIF":       {"image/gif", moving.Bytes(), color.Transparent, blue, "image/png"},
		"transparent PNG":  {"image/png", encoded(t, "image/png", clear), color.Transparent, blue, "image/png"},
		"deep PNG":         {"image/png", encoded(t, "image/png", deep), red, blue, "image/jpeg"},
	} {
		list, err := picture.Shrink(context.Background(), bytes.NewReader(c.b), c.mediaType, 20, 100)
		if err != nil || len(list) != 2 {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, s := range list {
			m := decoded(t, s)
			w, h := m.Bounds().Dx(), m.Bounds().Dy()
			if w != min(40, s.Longest) || h != w/2 || s.MediaType != c.made || !near(m.At(w/4, h/2), c.left) || !near(m.At(3*w/4, h/2), c.right) {
				t.Errorf("%s at %d: %d × %d %s, %v and %v", name, s.Longest, w, h, s.MediaType, m.At(w/4, h/2), m.At(3*w/4, h/2))
			}
		}
	}
}

func chunk(kind string, data []byte) []byte {
	b := append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), kind...)
	b = append(b, data...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

// A few bytes that say that they are a picture of gigabytes are refused before anything is decoded.
func TestBombsAreRefusedByTheirHeader(t *testing.T) {
	head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 60000), 60000)
	pngBomb := append([]byte("\x89PNG\r\n\x1a\n"), chunk("IHDR", append(head, 8, 6, 0, 0, 0))...)
	jpegBomb := encoded(t, "image/jpeg", quarters(16, 16))
	i := bytes.Index(jpegBomb, []byte{0xff, 0xc0})
	copy(jpegBomb[i+5:], []byte{0xff, 0xff, 0xff, 0xff})
	progressive := bytes.Clone(file(t, "progressive.jpg")) // 36 megapixels: as a plain one it would do
	i = bytes.Index(progressive, []byte{0xff, 0xc2})
	copy(progressive[i+5:], []byte{6000 >> 8, 6000 & 255, 6000 >> 8, 6000 & 255})
	gifBomb := encoded(t, "image/gif", quarters(16, 16))
	copy(gifBomb[6:], []byte{0xff, 0xff, 0xff, 0xff})
	for name, c := range map[string]struct {
		mediaType string
		b         []byte
	}{"PNG": {"image/png", pngBomb}, "JPEG": {"image/jpeg", jpegBomb}, "progressive JPEG": {"image/jpeg", progressive}, "GIF": {"image/gif", gifBomb}} {
		if info, ok := picture.Look(bytes.NewReader(c.b), c.mediaType); !ok || info.Width < 6000 {
			t.Errorf("%s: %+v %t", name, info, ok)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := picture.Shrink(context.Background(), bytes.NewReader(c.b), c.mediaType, 100)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, picture.ErrTooLarge) || took > 1<<20 {
			t.Errorf("%s: %v, with %d bytes of memory", name, err, took)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := picture.Shrink(ctx, bytes.NewReader(encoded(t, "image/png", quarters(2000, 2000))), "image/png", 100); !errors.Is(err, context.Canceled) {
		t.Errorf("a picture that nobody waits for: %v", err)
	}
	for _, mediaType := range []string{"image/jpeg", "image/png", "image/gif", "image/webp", "image/svg+xml", ""} {
		for _, b := range []string{"", "GIF89a", "\x89PNG\r\n\x1a\n", "\xff\xd8\xff", "RIFF\x00\x00\x00\x00WEBPVP8 ", "<svg/>"} {
			if info, ok := picture.Look(strings.NewReader(b), mediaType); ok {
				t.Errorf("%q is a picture of the type %s: %+v", b, mediaType, info)
			}
		}
	}
}

func TestSmallPicturesFitAndNeverGrow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, h, longest := rapid.IntRange(1, 1<<20).Draw(t, "w"), rapid.IntRange(1, 1<<20).Draw(t, "h"), rapid.IntRange(1, 3000).Draw(t, "longest")
		sw, sh := picture.Fit(w, h, longest)
		if sw < 1 || sh < 1 || sw > w || sh > h || max(sw, sh) != min(max(w, h), longest) {
			t.Fatalf("%d × %d within %d is %d × %d", w, h, longest, sw, sh)
		}
		if d := float64(sw)*float64(h)/float64(w) - float64(sh); sw > 1 && sh > 1 && (d > 1+float64(h)/float64(w) || d < -1-float64(h)/float64(w)) {
			t.Fatalf("%d × %d within %d is %d × %d: another shape", w, h, longest, sw, sh)
		}
	})
	rapid.Check(t, func(t *rapid.T) { // one colour stays that colour, whatever the sizes
		w, h := rapid.IntRange(1, 300).Draw(t, "w"), rapid.IntRange(1, 300).Draw(t, "h")
		c := color.NRGBA{rapid.Byte().Draw(t, "r"), rapid.Byte().Draw(t, "g"), rapid.Byte().Draw(t, "b"), rapid.Byte().Draw(t, "a")}
		m := image.NewNRGBA(image.Rect(0, 0, w, h))
		draw.Draw(m, m.Rect, image.NewUniform(c), image.Point{}, draw.Src)
		var b bytes.Buffer
		if err := png.Encode(&b, m); err != nil {
			t.Fatal(err)
		}
		longest := rapid.SliceOfNDistinct(rapid.IntRange(1, 320), 1, 3, rapid.ID[int]).Draw(t, "longest")
		list, err := picture.Shrink(context.Background(), bytes.NewReader(b.Bytes()), "image/png", longest...)
		if err != nil || len(list) != len(longest) {
			t.Fatal(err)
		}
		for _, s := range list {
			got, _, err := image.Decode(bytes.NewReader(s.Bytes))
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range []image.Point{{}, {s.Width - 1, s.Height - 1}, {s.Width / 2, s.Height / 2}} {
				if !near(got.At(p.X, p.Y), c) {
					t.Fatalf("%d × %d at %d: %v became %v", w, h, s.Longest, c, got.At(p.X, p.Y))
				}
			}
		}
	})
}

func FuzzPicture(f *testing.F) {
	kinds := []string{"image/jpeg", "image/png", "image/gif", "image/webp"}
	f.Add(uint8(0), oriented(encoded(f, "image/jpeg", quarters(8, 4)), 6, binary.LittleEndian))
	f.Add(uint8(0), file(f, "progressive.jpg"))
	f.Add(uint8(1), encoded(f, "image/png", quarters(8, 4)))
	f.Add(uint8(2), encoded(f, "image/gif", quarters(8, 4)))
	f.Add(uint8(3), file(f, "lossy.webp"))
	f.Add(uint8(3), file(f, "lossless.webp"))
	f.Fuzz(func(t *testing.T, kind uint8, b []byte) {
		mediaType := kinds[int(kind)%len(kinds)]
		info, ok := picture.Look(bytes.NewReader(b), mediaType)
		if ok && (info.Width < 1 || info.Height < 1) {
			t.Errorf("%+v", info)
		}
		if ok && info.Width*info.Height > 1<<20 {
			return
		}
		list, err := picture.Shrink(context.Background(), bytes.NewReader(b), mediaType, 16, 64)
		if err == nil && (!ok || len(list) != 2) {
			t.Errorf("%d small ones of %+v", len(list), info)
		}
		for _, s := range list {
			if w, h := picture.Fit(info.Width, info.Height, s.Longest); s.Width != w || s.Height != h {
				t.Errorf("%d × %d of %+v within %d", s.Width, s.Height, info, s.Longest)
			}
		}
	})
}

// BenchmarkThumbnails makes the three of a JPEG of 12 megapixels.
func BenchmarkThumbnails(b *testing.B) {
	m := quarters(4000, 3000)
	for i := range m.Pix {
		m.Pix[i] ^= uint8((i * i) >> 7 & 31)
	}
	large := encoded(b, "image/jpeg", m)
	b.SetBytes(int64(len(large)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := picture.Shrink(context.Background(), bytes.NewReader(large), "image/jpeg", 160, 480, 1280); err != nil {
			b.Fatal(err)
		}
	}
}
