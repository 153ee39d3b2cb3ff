//go:build unix && !aix && !solaris

package auth

import (
	"errors"
	"os"
	"syscall"
)

// tryLock takes the lock of f, which ends with f, unless another holds it. A file system without locks has none to wait for.
func tryLock(f *os.File) bool {
	return !errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// syncDir makes a new name in dir last.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
