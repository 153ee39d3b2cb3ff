package config

import (
	"slices"
	"strings"
)

// A member is one name that an object may have, what may stand there, and how its value is read into a T. A table of
// them is all that the parser knows of an object, and all that the JSON Schema and the README's table are made from.
type member[T any] struct {
	name   string
	schema schema
	read   func(l *loader, into *T, at place)
}

// readMembers reads the object at by table, in file order, and returns where each member stands. A name that the
// table lacks is refused, with the nearest one that it has.
func readMembers[T any](l *loader, at place, table []member[T], into *T) (given map[string]place, ok bool) {
	list, ok := l.entries(at)
	if !ok {
		return nil, false
	}
	given = make(map[string]place, len(list))
	for _, e := range list {
		i := slices.IndexFunc(table, func(m member[T]) bool { return m.name == e.name })
		if i < 0 && len(l.problems) >= maxProblems {
			break // advice that nobody will read costs time
		}
		if i < 0 {
			l.refuse(e.named(at), "is not a known member, %s", advice(e.name, names(table)))
			continue
		}
		given[e.name] = e.at
		table[i].read(l, into, e.at)
	}
	return given, true
}

func names[T any](table []member[T]) []string {
	list := make([]string, len(table))
	for i, m := range table {
		list[i] = m.name
	}
	return list
}

// advice says which name was meant, or which there are.
func advice(name string, known []string) string {
	near := nearest(name, known)
	switch {
	case near != "" && otherWords[name] == "upstreams":
		return "`mcp-gateway import FILE` makes a configuration of what an MCP client has; or did you mean " + near + "?"
	case near != "":
		return "did you mean " + near + "?"
	}
	slices.Sort(known)
	return "take it out; known here: " + strings.Join(known, ", ")
}

// nearest returns the known name that differs from name by little: case, `-` for `_`, or up to two letters (one in
// a short name). It returns "" where there is none.
func nearest(name string, known []string) string {
	if len(name) > 64 {
		return ""
	}
	if other, ok := otherWords[name]; ok && slices.Contains(known, other) {
		return other
	}
	best, bestBy := "", 3
	for _, k := range known {
		by := distance(simple(name), simple(k))
		if by < bestBy && by*3 <= len(k) {
			best, bestBy = k, by
		}
	}
	return best
}

// otherWords are names that client configurations have for the same thing.
var otherWords = map[string]string{"mcpServers": "upstreams", "servers": "upstreams", "auth": "credential", "type": "transport"}

func simple(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
}

// distance counts the letters to insert, delete or replace between a and b, and the neighbours to swap (optimal string alignment).
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
		for j := 1; j <= len(b); j++ {
			if i == 0 {
				rows[i][j] = j
				continue
			}
			replace := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			rows[i][j] = min(replace, rows[i][j-1]+1, rows[i-1][j]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
