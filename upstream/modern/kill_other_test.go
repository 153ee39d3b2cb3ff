//go:build !unix

package modern

import (
	"os"
	"syscall"
)

func killGroup(group int, _ syscall.Signal) error {
	p, err := os.FindProcess(group)
	if err != nil {
		return err
	}
	return p.Kill()
}
