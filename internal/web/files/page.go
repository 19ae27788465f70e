package files

import (
	"fmt"
	"net/url"
	"strings"
)

// Row is a file as the page of files shows it.
type Row struct {
	ID         string `json:"id"`
	Heap       string `json:"heap"`
	Name       string `json:"name"`
	MediaType  string `json:"media_type"`
	Size       int64  `json:"size"`
	Width      int    `json:"width"`
	Height     int    `json:"height"`
	CreatedAt  string `json:"created_at"`
	Thumbnails []struct {
		Size   string `json:"size"`
		Width  int    `json:"width"`
		Height int    `json:"height"`
	} `json:"thumbnails"`
	HeapName string `json:"-"`
}

// Kind words what a file is.
func (f Row) Kind() string {
	kind, _, _ := strings.Cut(f.MediaType, ";")
	if f.Width > 0 {
		return fmt.Sprintf("%s, %d × %d", kind, f.Width, f.Height)
	}
	return kind
}

// Page is what the page of files shows.
type Page struct {
	Files    []Row
	Filter   [][2]string // heaps to choose from, all of them first
	Writable [][2]string // heaps that a file can go to
	Heap     string
	Trash    bool
	Most     string // the largest file
	Next     string // address of the next page
	Other    string // address of the trash, or out of it
}

// Heap is one that the visitor sees; Writes tells that files can be put there.
type Heap struct {
	ID, Name string
	Writes   bool
}

// Listed is what list_files answers.
type Listed struct {
	Files []Row  `json:"files"`
	Next  string `json:"next_cursor"`
}

// pageFiles is how many files a page shows.
const pageFiles = 24

// NewPage makes the page that a query asks for. list is list_files.
func NewPage(asked url.Values, most int64, heaps []Heap, list func(args map[string]any) (Listed, error)) (Page, error) {
	p := Page{Heap: asked.Get("heap"), Trash: asked.Get("trash") != "", Most: mostText(most), Filter: [][2]string{{"", "All heaps"}}}
	names := map[string]string{}
	for _, h := range heaps {
		names[h.ID] = h.Name
		p.Filter = append(p.Filter, [2]string{h.ID, h.Name})
		if h.Writes {
			p.Writable = append(p.Writable, [2]string{h.ID, h.Name})
		}
	}
	args := map[string]any{"limit": pageFiles, "trashed": p.Trash}
	for _, k := range []string{"heap", "cursor"} {
		if v := asked.Get(k); v != "" {
			args[k] = v
		}
	}
	out, err := list(args)
	if err != nil {
		return p, err
	}
	p.Files = out.Files
	for i, f := range p.Files {
		p.Files[i].HeapName = names[f.Heap]
	}
	if out.Next != "" {
		p.Next = p.Address(out.Next, p.Trash)
	}
	p.Other = p.Address("", !p.Trash)
	return p, nil
}

// mostText words the largest size as it is set: 200 MiB are 209.7 MB.
func mostText(n int64) string {
	if n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return SizeText(n)
}

// Address gives the page's address with what is chosen on it.
func (p Page) Address(cursor string, trash bool) string {
	v := url.Values{}
	if p.Heap != "" {
		v.Set("heap", p.Heap)
	}
	if trash {
		v.Set("trash", "1")
	}
	if cursor != "" {
		v.Set("cursor", cursor)
	}
	if len(v) == 0 {
		return "/files"
	}
	return "/files?" + v.Encode()
}

// SizeText words a number of bytes.
func SizeText(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d bytes", n)
	}
	f, units := float64(n), []string{"kB", "MB", "GB", "TB"}
	for i, unit := range units {
		if f /= 1000; f < 999.5 || i == len(units)-1 {
			if f < 9.95 {
				return fmt.Sprintf("%.1f %s", f, unit)
			}
			return fmt.Sprintf("%.0f %s", f, unit)
		}
	}
	return ""
}
