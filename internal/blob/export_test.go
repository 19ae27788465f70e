package blob

import "os"

// Create sets how an inbox makes files.
func Create(b *Inbox, f func(dir string) (*os.File, error)) { b.create = f }
