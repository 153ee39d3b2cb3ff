//go:build !linux

package leakcheck

// children finds nothing where there is no /proc to look in.
func children() []string { return nil }
