//go:build unix

package modern

import "syscall"

func killGroup(group int, signal syscall.Signal) error { return syscall.Kill(-group, signal) }
