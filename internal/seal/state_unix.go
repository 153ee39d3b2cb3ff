//go:build unix

package seal

import (
	"fmt"
	"io/fs"
	"os"
)

// openToOthers says how others can reach the file, or nothing. The group's bits are let pass: Kubernetes sets them on
// every file of a volume with an fsGroup, at each mount.
func openToOthers(info fs.FileInfo) string {
	if mode := info.Mode().Perm(); mode&0o007 != 0 {
		return fmt.Sprintf("is open to every user of this machine (mode %04o)", mode)
	}
	return ""
}

// syncDir makes the names in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
