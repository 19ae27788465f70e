// Package embed turns texts into vectors whose cosine says how near two texts are in meaning. The built-in model is part of
// the binary and needs no network; an endpoint that speaks OpenAI's form can be asked instead. The package keeps nothing
// and knows no database; what is embedded, when, and where the vectors lie is up to its callers.
//
// Vectors of one model have unit length, so that the cosine of two is their dot product. A text without words gives the
// zero vector, which is near to nothing.
package embed

import "context"

// Model embeds texts. It is safe for concurrent use.
type Model interface {
	// ID names the model with its version. Vectors of different IDs can't be compared: they must be made anew.
	ID() string
	// Dimensions says how long the vectors are; 0 where a model behind an endpoint hasn't answered yet.
	Dimensions() int
	// Embed gives a vector for each text, in their order. Of a text beyond the model's window only the beginning counts:
	// see Split. Errors are faults, or the context's.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// Builtin gives the model that is part of the binary: the Universal Sentence Encoder Lite, for English. It reads 128 tokens
// of a text, which is about 580 characters of English prose; 512 dimensions. It computes on the calling goroutine alone.
//
// The weights (7.2 MB) are read where they lie in the binary, so that the system loads and drops their pages as it needs.
// On the heap are 230 KB of tables from the first use on and, while a text is embedded, 0.1 to 1.5 MB by its length.
func Builtin() Model { return lite{} }

type lite struct{}

func (lite) ID() string      { return "use-lite-en-int8-1" }
func (lite) Dimensions() int { return dimensions }

func (lite) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	net := loaded()
	vectors := make([][]float32, len(texts))
	for i, t := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		vectors[i] = net.embed(t)
	}
	return vectors, nil
}
