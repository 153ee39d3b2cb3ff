package config

import (
	"crypto/sha256"
	"io"
	"os"
	"slices"
)

// A Reading is what some files held at one moment. It is immutable.
type Reading struct {
	Files []string
	sums  [][sha256.Size]byte // of each; zero where it could not be read
}

// Read reads the files. One that cannot be read is part of the Reading as well.
func Read(files ...string) Reading {
	r := Reading{Files: files}
	for _, path := range files {
		sum, _ := sumOf(path)
		r.sums = append(r.sums, sum)
	}
	return r
}

// Same reports whether both are of the same files with the same content.
func (r Reading) Same(other Reading) bool {
	return slices.Equal(r.Files, other.Files) && slices.Equal(r.sums, other.sums)
}

// Lacks reports whether a file cannot be read that could be read before, which is a Reading of the same files.
func (r Reading) Lacks(before Reading) bool {
	for i, sum := range r.sums {
		if sum == ([sha256.Size]byte{}) && before.sums[i] != sum {
			return true
		}
	}
	return false
}

// sumOf is the sum of a regular file, and false for anything else.
func sumOf(path string) (sum [sha256.Size]byte, ok bool) {
	// Asked before it is opened, since opening a named pipe waits for its other end.
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return sum, false
	}
	f, err := os.Open(path)
	if err != nil {
		return sum, false
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return sum, false
	}
	return sha256.Sum256(data), true
}
