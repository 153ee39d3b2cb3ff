package config

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mcp-gateway/redact"
)

const (
	maxReferenced      = 64 << 10 // bytes of one referenced file
	maxReferencedTotal = 4 << 20  // bytes that all references of a configuration may bring
	fileSecretLength   = 16       // from here on a file's content is a credential whatever its name
)

var (
	errReferenceOpen    = errors.New("has ${ without }, close it, or write $${ for a literal ${")
	errReferenceUnknown = errors.New("has a reference that is neither ${env:NAME} nor ${file:PATH}, write $${ for a literal ${")
	errReferenceBudget  = errors.New("the references of this file bring more than 4 MiB, refer to less")
)

// references resolves ${env:} and ${file:}; each file is read once, so that all see the same content.
type references struct {
	dir   string
	files map[string]string
	asked map[string]int               // how often each was referred to
	sums  map[string][sha256.Size]byte // of each that could be read, as it was
	used  int
}

func newReferences(name string) references {
	return references{dir: filepath.Dir(name), files: map[string]string{}, asked: map[string]int{}, sums: map[string][sha256.Size]byte{}}
}

// expand replaces the references of text. What they bring is not expanded again.
func (l *loader) expand(text string) (value, error) {
	if !strings.Contains(text, "${") {
		return value{text: text}, nil
	}
	var out strings.Builder
	v := value{}
	for {
		i := strings.Index(text, "${")
		if i < 0 {
			break
		}
		if i > 0 && text[i-1] == '$' {
			out.WriteString(text[:i-1] + "${")
			text = text[i+2:]
			continue
		}
		out.WriteString(text[:i])
		inside, rest, closed := strings.Cut(text[i+2:], "}")
		if !closed {
			return value{}, errReferenceOpen
		}
		brought, err := l.resolve(inside)
		if err != nil {
			return value{}, err
		}
		if l.references.used += len(brought); l.references.used > maxReferencedTotal {
			return value{}, errReferenceBudget
		}
		out.WriteString(brought)
		v.referenced = true
		text = rest
	}
	out.WriteString(text)
	v.text = out.String()
	return v, nil
}

// resolve returns what `env:NAME` or `file:PATH` stands for, and makes it known where it is a credential.
func (l *loader) resolve(reference string) (string, error) {
	kind, name, _ := strings.Cut(reference, ":")
	switch {
	case name == "":
		return "", errReferenceUnknown
	case kind == "env":
		if !environmentName(name) {
			return "", errReferenceUnknown
		}
		text, set := os.LookupEnv(name)
		if !set {
			return "", fmt.Errorf("environment variable %s is not set, set it before the start", name)
		}
		if credentialVariable(name, text) {
			l.secret(text)
		}
		return text, nil
	case kind == "file":
		text, err := l.references.file(name)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w, make it or correct the path", err)
		}
		if err != nil {
			return "", err
		}
		if len(text) >= fileSecretLength || redact.CredentialName(filepath.Base(name)) {
			l.secret(text)
		}
		return text, nil
	}
	return "", errReferenceUnknown
}

func environmentName(name string) bool {
	for i, r := range name {
		if r != '_' && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}

// file returns the content of a regular file without its one trailing newline.
func (r *references) file(path string) (string, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.dir, path)
	}
	r.asked[path]++
	if text, known := r.files[path]; known {
		return text, nil
	}
	// Asked before it is opened, since opening a named pipe waits for its other end.
	info, err := os.Stat(path)
	if err != nil {
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			err = e.Err // the path is named already
		}
		return "", fmt.Errorf("file %s cannot be read: %w", path, err)
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("file %s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("file %s cannot be read: %s", path, plainCause(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxReferenced+1))
	if err != nil {
		return "", fmt.Errorf("file %s cannot be read: %s", path, plainCause(err))
	}
	if len(data) > maxReferenced {
		return "", fmt.Errorf("file %s is larger than %d KiB", path, maxReferenced>>10)
	}
	text, cut := strings.CutSuffix(string(data), "\n")
	if cut {
		text = strings.TrimSuffix(text, "\r")
	}
	r.files[path], r.sums[path] = text, sha256.Sum256(data)
	return text, nil
}

// watched is what was read and makes another configuration where it changes: a bearer's own file is read by its source.
func (l *loader) watched(c *Config, own [sha256.Size]byte) Reading {
	for _, u := range c.Upstreams {
		if u.Credential != nil && u.Credential.BearerFile != "" {
			l.references.asked[u.Credential.BearerFile]--
		}
	}
	return l.references.reading(l.file, own)
}

// reading is of the file, which has the sum own, and of those that it was found to refer to, whether or not they could be read.
func (r *references) reading(file string, own [sha256.Size]byte) Reading {
	read := Reading{Files: []string{file}, sums: [][sha256.Size]byte{own}}
	for _, path := range slices.Sorted(maps.Keys(r.asked)) {
		if r.asked[path] > 0 {
			read.Files, read.sums = append(read.Files, path), append(read.sums, r.sums[path])
		}
	}
	return read
}
