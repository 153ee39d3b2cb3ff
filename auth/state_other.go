//go:build !unix || aix || solaris

package auth

import "os"

// tryLock takes nothing: without it, no two may be configured with the same refresh token.
func tryLock(*os.File) bool { return true }

// syncDir does nothing: not all of these systems can sync a directory.
func syncDir(string) error { return nil }
