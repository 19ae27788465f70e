//go:build unix

package db

import (
	"os"

	"golang.org/x/sys/unix"
)

// lockFile locks a file against other processes, waiting for it or not. The system lets go of it when the process ends.
func lockFile(path string, wait bool) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	how := unix.LOCK_EX
	if !wait {
		how |= unix.LOCK_NB
	}
	for {
		if err = unix.Flock(int(f.Fd()), how); err != unix.EINTR {
			break
		}
	}
	if err != nil {
		_ = f.Close()
		if err == unix.EWOULDBLOCK {
			return nil, errHeld
		}
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}
