package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// Find is the path that Start would start, without starting it. An error says in words what is missing.
func Find(cfg Config) (string, error) { return find(cfg) }

// find returns the path to start: Command itself where it is a path, else the first program of
// that name in the PATH that the command will see. PATH entries that are not absolute are
// passed over, so that no directory that happens to be current can supply the program.
func find(cfg Config) (string, error) {
	if cfg.Command == "" {
		return "", errors.New("start a command: none was given")
	}
	if err := checkDir(cfg); err != nil {
		return "", err
	}
	if strings.ContainsRune(cfg.Command, '/') || filepath.Base(cfg.Command) != cfg.Command {
		return cfg.Command, nil
	}
	if runtime.GOOS == "windows" {
		path, err := exec.LookPath(cfg.Command) // knows PATHEXT
		if err != nil {
			return "", fmt.Errorf("start %q: it is not in PATH; install it, or give its full path: %w", cfg.Command, err)
		}
		return path, nil
	}
	list := variable(cfg.Env, "PATH")
	if list == "" {
		return "", fmt.Errorf("start %q: its environment has no PATH to find it in; set PATH, or give its full path: %w",
			cfg.Command, fs.ErrNotExist)
	}
	var denied string
	for _, dir := range filepath.SplitList(list) {
		path := filepath.Join(dir, cfg.Command)
		if !filepath.IsAbs(path) {
			continue
		}
		info, err := os.Stat(path)
		switch {
		case err != nil || info.IsDir():
		case info.Mode()&0o111 == 0:
			denied = path
		default:
			return path, nil
		}
	}
	if denied != "" {
		return "", fmt.Errorf("start %q: permission denied: %s is not marked as executable (chmod +x): %w",
			cfg.Command, denied, fs.ErrPermission)
	}
	return "", fmt.Errorf("start %q: no such command in PATH (searched %s); install it, or give its full path: %w",
		cfg.Command, list, fs.ErrNotExist)
}

func checkDir(cfg Config) error {
	if cfg.Dir == "" {
		return nil
	}
	info, err := os.Stat(cfg.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("start %q: its working directory %q does not exist: %w", cfg.Command, cfg.Dir, fs.ErrNotExist)
	case err != nil:
		return fmt.Errorf("start %q: look at its working directory: %w", cfg.Command, err)
	case !info.IsDir():
		return fmt.Errorf("start %q: its working directory %q is not a directory: %w", cfg.Command, cfg.Dir, syscall.ENOTDIR)
	}
	return nil
}

// explain puts the system's refusal into words. path is what was to be started.
func explain(cfg Config, path string, err error) error {
	var code syscall.Errno
	if !errors.As(err, &code) {
		return fmt.Errorf("start %q: %w", cfg.Command, err)
	}
	file := path
	if !filepath.IsAbs(file) {
		file = filepath.Join(cfg.Dir, file) // as the system took it: after the change of directory
	}
	words := "the system refused"
	switch {
	case errors.Is(code, fs.ErrNotExist):
		words = "there is no such file"
		if _, statErr := os.Stat(file); statErr == nil {
			words = "the file is there, but the interpreter that its first line (#!) or its format asks for is missing"
		}
	case errors.Is(code, fs.ErrPermission):
		words = "permission denied: it is not executable for this user, or a directory above it or its working directory is closed"
	case code == syscall.ENOEXEC:
		words = "it is no program for this system, nor a script whose first line (#!) names its interpreter"
	case code == syscall.E2BIG:
		words = "its arguments and environment together are too long"
	case code == syscall.EINVAL:
		words = "its arguments, environment or directory hold a NUL character"
	case code == syscall.EAGAIN:
		words = "this user may not have more processes"
	}
	return fmt.Errorf("start %q: %s: %w", cfg.Command, words, code)
}

// variable returns the value of the last NAME=value pair, which is the one that counts.
func variable(env []string, name string) string {
	var found string
	for _, pair := range env {
		if key, value, ok := strings.Cut(pair, "="); ok && key == name {
			found = value
		}
	}
	return found
}
