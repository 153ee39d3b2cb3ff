//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "bench: it needs Linux, which says what each process has used")
	os.Exit(1)
}
