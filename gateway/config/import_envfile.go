package config

import (
	"path/filepath"
	"regexp"
	"strings"

	"mcp-gateway/redact"
)

var envLine = regexp.MustCompile(`^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]{0,63})\s*=\s*(.*)$`)

// readEnvFile makes each variable of an envFile one of the child, with its value from the environment. No value in it is used.
func (i *importer) readEnvFile(s *server, at place) {
	text, ok := i.scalar(at)
	if !ok {
		return
	}
	text = i.resolveClient(s, text, "the envFile", nil)
	if strings.ContainsFunc(text, isPlaceholder) {
		i.remark(s, at, "cannot be found from here: name under env what stands in it, each as NAME: ${env:NAME}")
		return
	}
	if i.workspace != "" && !filepath.IsAbs(text) {
		text = filepath.Join(i.workspace, text)
	}
	content, err := i.references.file(text)
	if err != nil {
		i.remark(s, at, "is not taken over, %v: name under env what stands in it, each as NAME: ${env:NAME}", err)
		return
	}
	given := map[string]bool{}
	for _, e := range s.env {
		given[e.name] = true // it wins over the file
	}
	for _, name := range envNames(content) {
		if !given[name] {
			given[name] = true
			placeholder := i.refer(s, "file "+text+" "+name, "the variable "+name, func(v *variable) {
				v.wanted, v.hints = name, []string{"from " + filepath.Base(text)}
			})
			s.env = append(s.env, setting{name, placeholder})
		}
	}
	i.remark(s, at, "is not read by the gateway: its variables are under env, set them where the gateway starts")
}

// envNames returns the names of the variables in the text of an envFile. What goes on over lines in quotes is a value to its end,
// and a name with the looks of a credential is more likely one in the wrong place.
func envNames(text string) []string {
	var names []string
	open := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if open != "" {
			if strings.Contains(line, open) {
				open = ""
			}
			continue
		}
		m := envLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		for _, quote := range []string{`"`, `'`, "`"} {
			if rest, quoted := strings.CutPrefix(m[2], quote); quoted && !strings.Contains(rest, quote) {
				open = quote
			}
		}
		if m[1] == strings.ToUpper(m[1]) || !redact.CredentialShape(m[1]) {
			names = append(names, m[1])
		}
	}
	return names
}
