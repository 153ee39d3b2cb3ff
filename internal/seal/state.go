package seal

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// stateFile holds one key in standard Base64, the form of an entry of seal.keys, so that it can be moved there.
const stateFile = "seal.key"

// maxStateFile is room for the key and for an editor's white space around it.
const maxStateFile = 1024

// StateKey returns the key kept in dir, making both where they do not exist. Processes that start at the same moment get
// the same key, and it is on disk before it is returned.
//
// A nil key with an error: there is a key file and it cannot be trusted or read. It is never replaced, since tokens in
// clients' hands were sealed with it; a person must look. A key with an error: it could not be kept, and the error is a
// warning that says what its loss means.
func StateKey(dir string) ([]byte, error) {
	path := filepath.Join(dir, stateFile)
	// A directory that cannot be searched has no key to offer, as one that does not exist.
	if info, err := os.Stat(path); dir != "" && err == nil {
		return readKey(path, info)
	}
	key := NewKey()
	made, err := keepKey(dir, path, key)
	if err != nil {
		return key, fmt.Errorf("keeping the key for sealing in state_dir: %w; tokens that clients hold end with this process (make state_dir writable, or set seal.keys)", err)
	}
	if !made {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("reading the key for sealing that another process just made: %w", err)
		}
		return readKey(path, info)
	}
	return key, nil
}

// readKey takes only a regular file: opening a pipe would wait for its writer.
func readKey(path string, info fs.FileInfo) ([]byte, error) {
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("the key for sealing, %s, is not a regular file; move it away, and one is made", path)
	}
	if open := openToOthers(info); open != "" {
		return nil, fmt.Errorf("the key for sealing, %s, %s, so it may be known; delete it, and one is made (clients connect anew), or chmod 600 it if nobody has read it", path, open)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the key for sealing: %w; let this user read it, or set another state_dir", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxStateFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading the key for sealing: %w", err)
	}
	key, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != KeySize || len(text) > maxStateFile {
		return nil, fmt.Errorf("the key for sealing, %s, does not hold %d bytes in Base64; delete it, and one is made (clients connect anew)", path, KeySize)
	}
	return key, nil
}

// keepKey puts the key at path with all its bytes at once, and only if nothing is there; made says whether it did.
func keepKey(dir, path string, key []byte) (made bool, err error) {
	if dir == "" {
		return false, errors.New("there is none")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, err
	}
	f, err := os.CreateTemp(dir, stateFile+".*.new") // 0600
	if err != nil {
		return false, err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(base64.StdEncoding.EncodeToString(key) + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return false, err
	}
	// Not a rename, which would replace the key that another process is already sealing with.
	switch err := os.Link(f.Name(), path); {
	case errors.Is(err, fs.ErrExist):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, syncDir(dir)
}
