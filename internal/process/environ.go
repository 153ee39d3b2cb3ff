package process

import (
	"os"
	"runtime"
	"strings"
)

// Environ returns the environment for a child as NAME=value pairs: those of set, and before them
// what the gateway's own environment holds of PATH, HOME, LANG, TMPDIR, TZ and USER (on Windows,
// of what a process needs there), or all of it with inherit. set wins over what is inherited and
// a later pair of set over an earlier one; no name comes twice.
func Environ(inherit bool, set []string) []string {
	return environ(os.Environ(), inherit, set, runtime.GOOS == "windows")
}

// named are the variables that reach every child. The gateway's others may hold its secrets.
var (
	named        = []string{"PATH", "HOME", "LANG", "TMPDIR", "TZ", "USER"}
	namedWindows = []string{"PATH", "PATHEXT", "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC",
		"TEMP", "TMP", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)",
		"USERPROFILE", "USERNAME", "HOMEDRIVE", "HOMEPATH", "PROCESSOR_ARCHITECTURE", "LANG", "TZ"}
)

func environ(own []string, inherit bool, set []string, windows bool) []string {
	fold, names := func(s string) string { return s }, named
	if windows {
		fold, names = strings.ToUpper, namedWindows
	}
	wanted := make(map[string]bool)
	for _, name := range names {
		wanted[name] = true
	}
	at := make(map[string]int)
	var env []string
	add := func(pair string, name string) {
		if i, ok := at[fold(name)]; ok {
			env[i] = pair
			return
		}
		at[fold(name)] = len(env)
		env = append(env, pair)
	}
	for _, pair := range own {
		// Windows keeps the current directory of each drive under names such as "=C:".
		if name, _, ok := strings.Cut(pair, "="); ok && name != "" && (inherit || wanted[fold(name)]) {
			add(pair, name)
		}
	}
	for _, pair := range set {
		if name, _, ok := strings.Cut(pair, "="); ok && name != "" {
			add(pair, name)
		}
	}
	return env
}
