package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"mcp-gateway/gateway/config"
)

// A Complaint is a config.Problem for a program.
type Complaint struct {
	File string `json:"file"`
	Line int    `json:"line,omitempty"` // from 1; 0 is the file as a whole
	Col  int    `json:"col,omitempty"`
	Path string `json:"path,omitempty"`
	Text string `json:"text"`
}

// A Checked is the result of `check`, for a program.
type Checked struct {
	File      string      `json:"file"`
	OK        bool        `json:"ok"`
	Problems  []Complaint `json:"problems"`
	Warnings  []Complaint `json:"warnings"`
	Upstreams []Reached   `json:"upstreams,omitempty"` // where they were dialed
}

// NewChecked is what config.Load has said of a file, and Dial of its upstreams.
func NewChecked(file string, warnings []config.Problem, err error, reached []Reached) *Checked {
	c := &Checked{File: file, OK: err == nil && Unreached(reached) == 0, Problems: []Complaint{}, Warnings: complaints(warnings), Upstreams: reached}
	if problems, ok := errors.AsType[config.Problems](err); ok {
		c.Problems = complaints(problems)
	} else if err != nil {
		c.Problems = append(c.Problems, Complaint{File: file, Text: err.Error()})
	}
	return c
}

func complaints(list []config.Problem) []Complaint {
	out := make([]Complaint, len(list))
	for i, p := range list {
		out[i] = Complaint(p)
	}
	return out
}

// Unreached is how many of them are not OK.
func Unreached(list []Reached) int {
	n := 0
	for i := range list {
		if !list[i].OK {
			n++
		}
	}
	return n
}

// A Style says how a person is shown things.
type Style struct{ Color bool }

func (s Style) paint(code, text string) string {
	if !s.Color {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s Style) good(text string) string   { return s.paint("32", text) }
func (s Style) bad(text string) string    { return s.paint("31", text) }
func (s Style) strong(text string) string { return s.paint("1", text) }

// WriteReached shows a person what became of the attempts: for each upstream its phases, and what to do about the one that
// has failed.
func WriteReached(w io.Writer, style Style, list []Reached) error {
	for i := range list {
		r := &list[i]
		if _, err := fmt.Fprintf(w, "%s  %s, %s\n", style.strong(r.ID), r.Engine, r.Address); err != nil {
			return err
		}
		if err := r.writePhases(w, style); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reached) writePhases(w io.Writer, style Style) error {
	return writeTable(w, func(table io.Writer) {
		for _, p := range r.Phases {
			mark, text := style.good("ok    "), p.Detail
			if !p.OK {
				mark, text = style.bad("FAILED"), p.Error
			}
			fmt.Fprintf(table, "  %s  %s\t%s\t%s\n", mark, p.Name, took(p.TookMs), text)
			if p.Fix != "" {
				fmt.Fprintf(table, "          → %s\n", p.Fix)
			}
		}
	})
}

// writeTable aligns the columns of what fill writes, whose cells end with a tab or the line.
func writeTable(w io.Writer, fill func(io.Writer)) error {
	var text bytes.Buffer
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fill(table)
	_ = table.Flush() // a buffer takes everything
	for line := range bytes.Lines(text.Bytes()) {
		if _, err := w.Write(append(bytes.TrimRight(line, " \n"), '\n')); err != nil {
			return err
		}
	}
	return nil
}

// took is a time for a person.
func took(ms float64) string {
	switch {
	case ms >= 10_000:
		return fmt.Sprintf("%.0f s", ms/1000)
	case ms >= 10:
		return fmt.Sprintf("%.0f ms", ms)
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", ms), ".0") + " ms"
}
