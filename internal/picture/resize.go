package picture

import (
	"image"
	"image/draw"

	xdraw "golang.org/x/image/draw"
)

// resize gives a part of a picture in the size w × h, which is no larger. First whole blocks of pixels are averaged, strip by strip,
// so that no second copy of a large picture is made; what is left of the way is less than half, and done by interpolation.
func resize(src image.Image, part image.Rectangle, w, h int) *image.RGBA {
	small := average(src, part, max(1, part.Dx()/w), max(1, part.Dy()/h))
	if b := small.Bounds(); b.Dx() == w && b.Dy() == h {
		return small
	}
	dst := image.NewRGBA(image.Rect(0, 0, w, h))
	xdraw.ApproxBiLinear.Scale(dst, dst.Bounds(), small, small.Bounds(), draw.Src, nil)
	return dst
}

// average makes one pixel of each block of kx × ky. What lies outside the source is transparent.
func average(src image.Image, part image.Rectangle, kx, ky int) *image.RGBA {
	w, h := (part.Dx()+kx-1)/kx, (part.Dy()+ky-1)/ky
	dst := image.NewRGBA(image.Rect(0, 0, w, h))
	strip := image.NewRGBA(image.Rect(0, 0, part.Dx(), ky))
	sums := make([]uint32, 4*w)
	for y := range h {
		rows := min(ky, part.Dy()-y*ky)
		clear(strip.Pix)
		draw.Draw(strip, image.Rect(0, 0, part.Dx(), rows), src, part.Min.Add(image.Pt(0, y*ky)), draw.Src)
		clear(sums)
		for r := range rows {
			line := strip.Pix[r*strip.Stride:]
			for x := range part.Dx() {
				s, p := sums[4*(x/kx):4*(x/kx)+4], line[4*x:4*x+4]
				s[0] += uint32(p[0])
				s[1] += uint32(p[1])
				s[2] += uint32(p[2])
				s[3] += uint32(p[3])
			}
		}
		out := dst.Pix[y*dst.Stride:]
		for x := range w {
			n := uint32(rows * min(kx, part.Dx()-x*kx))
			for i := range 4 {
				out[4*x+i] = uint8((sums[4*x+i] + n/2) / n)
			}
		}
	}
	return dst
}

// turned gives a picture as EXIF's Orientation says that it is to be shown.
func turned(m *image.RGBA, turn int) *image.RGBA {
	w, h := m.Bounds().Dx(), m.Bounds().Dy()
	from := map[int]func(x, y int) (int, int){
		2: func(x, y int) (int, int) { return w - 1 - x, y },
		3: func(x, y int) (int, int) { return w - 1 - x, h - 1 - y },
		4: func(x, y int) (int, int) { return x, h - 1 - y },
		5: func(x, y int) (int, int) { return y, x },
		6: func(x, y int) (int, int) { return y, h - 1 - x },
		7: func(x, y int) (int, int) { return w - 1 - y, h - 1 - x },
		8: func(x, y int) (int, int) { return w - 1 - y, x },
	}[turn]
	if from == nil {
		return m
	}
	dw, dh := w, h
	if turn >= 5 {
		dw, dh = h, w
	}
	dst := image.NewRGBA(image.Rect(0, 0, dw, dh))
	for y := range dh {
		for x := range dw {
			sx, sy := from(x, y)
			copy(dst.Pix[dst.PixOffset(x, y):][:4], m.Pix[m.PixOffset(sx, sy):][:4])
		}
	}
	return dst
}
