package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strconv"
	"strings"

	"cairn/internal/signin"
)

//go:embed assets/*
var assetFiles embed.FS

type asset struct {
	body []byte
	hash string
	kind string
}

var assetKinds = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8"}

// assets are the files that pages ask for, by name. Their address bears a hash of what is in them, so that a browser may
// keep them for ever and still sees a new one at once.
var assets = readAssets()

func readAssets() map[string]asset {
	all := map[string]asset{}
	files, err := assetFiles.ReadDir("assets")
	if err != nil {
		panic(err)
	}
	for _, f := range files {
		b, err := assetFiles.ReadFile("assets/" + f.Name())
		if err != nil {
			panic(err)
		}
		all[f.Name()] = newAsset(f.Name(), b)
	}
	all["words.txt"] = newAsset("words.txt", []byte(strings.Join(signin.Words(), "\n")))
	return all
}

func newAsset(name string, body []byte) asset {
	h := sha256.Sum256(body)
	return asset{body, hex.EncodeToString(h[:6]), assetKinds[path.Ext(name)]}
}

func assetURL(name string) string { return "/assets/" + name + "?v=" + assets[name].hash }

func (s *Server) asset(w http.ResponseWriter, r *http.Request) {
	a, ok := assets[r.PathValue("name")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("Cache-Control", "no-cache")
	if r.URL.Query().Get("v") == a.hash {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	h.Set("Content-Length", strconv.Itoa(len(a.body)))
	_, _ = w.Write(a.body)
}
