package made

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"cairn/internal/embed"
)

// kept is a model whose vectors are remembered, in a file too where there is a folder for it.
type kept struct {
	embed.Model
	mu   sync.Mutex
	have map[[16]byte][]float32
	file *os.File
}

// Keep makes a model remember its vectors, in a file of a folder too where one is given.
func Keep(m embed.Model, dir string) (embed.Model, error) {
	k := &kept{Model: m, have: map[[16]byte][]float32{}}
	if dir == "" {
		return k, nil
	}
	path := filepath.Join(dir, m.ID()+".vectors")
	b, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	row := 16 + 4*m.Dimensions()
	for ; len(b) >= row; b = b[row:] {
		v := make([]float32, m.Dimensions())
		for i := range v {
			v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[16+4*i:]))
		}
		k.have[[16]byte(b[:16])] = v
	}
	k.file, err = os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return k, err
}

func (k *kept) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, t := range texts {
		sum := sha256.Sum256([]byte(t))
		key := [16]byte(sum[:16])
		k.mu.Lock()
		v, ok := k.have[key]
		k.mu.Unlock()
		if !ok {
			vs, err := k.Model.Embed(ctx, []string{t})
			if err != nil {
				return nil, err
			}
			v = vs[0]
			if err := k.keep(key, v); err != nil {
				return nil, err
			}
		}
		out[i] = v
	}
	return out, nil
}

func (k *kept) keep(key [16]byte, v []float32) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.have[key] = v
	if k.file == nil {
		return nil
	}
	b := slices.Clone(key[:])
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	_, err := k.file.Write(b)
	return err
}
