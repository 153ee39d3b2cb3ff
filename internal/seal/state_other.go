//go:build !unix

package seal

import "io/fs"

// openToOthers says nothing: the mode bits of these systems do not tell who can read a file.
func openToOthers(fs.FileInfo) string { return "" }

// syncDir does nothing: these systems cannot sync a directory.
func syncDir(string) error { return nil }
