package listen

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Whatever the umask is, no other user may connect to a socket of a server or of its admin port.
func TestSocketsArePrivate(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	for _, name := range []string{"server", "admin"} {
		path := filepath.Join(t.TempDir(), name)
		l, err := At("unix:"+path, nil, false)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		for _, file := range []string{path, path + ".lock"} {
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v, %v", file, info.Mode(), err)
			}
		}
	}
}
