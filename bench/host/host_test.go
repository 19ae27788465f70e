package host

import "testing"

func TestFileSystem(t *testing.T) {
	mounts := "a / ext4 rw 0 0\nb /mnt tmpfs rw 0 0\nc /mnt/deep xfs rw 0 0\n"
	for dir, want := range map[string]string{"/mnt/deep/x": "xfs", "/mnt/deeper": "tmpfs", "/home": "ext4"} {
		if got := fileSystem(mounts, dir); got != want {
			t.Errorf("%s: %s, want %s", dir, got, want)
		}
	}
}
