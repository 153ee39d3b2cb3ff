package gateway

import (
	"fmt"
	"io"
	"strings"
)

// WriteText shows a person what the server speaks, and the configuration that fits.
func (s *Inspection) WriteText(w io.Writer, style Style) error {
	if s.blocked() {
		t := &s.Tries[0]
		return s.writeEnd(w, style.bad("FAILED")+"  "+t.Phase+"  "+t.Error+"\n")
	}
	several := false
	for n := range s.Tries {
		several = several || schemeless(s.Tries[n].Address) != schemeless(s.Tries[0].Address)
	}
	err := writeTable(w, func(table io.Writer) {
		for n := range s.Tries {
			t := &s.Tries[n]
			mark, text := style.good("yes"), strings.Join(t.Revisions, ", ")
			if !t.OK {
				mark, text = style.bad("no "), t.Error
			}
			fmt.Fprintf(table, "%s\t", t.Engine)
			if several {
				fmt.Fprintf(table, "%s\t", t.Address)
			}
			fmt.Fprintf(table, "%s\t%s\n", mark, text)
		}
	})
	if err != nil {
		return err
	}
	if s.Entry == "" {
		return s.writeEnd(w, "\nNone of these fits.\n")
	}
	return s.writeEnd(w, "\nThis configuration fits:\n\n"+s.Entry)
}

// writeEnd writes the last text, and what is to be done.
func (s *Inspection) writeEnd(w io.Writer, text string) error {
	if more := s.Note + s.Fix; more != "" {
		text += "\n→ " + more + "\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

// schemeless is an address without its scheme.
func schemeless(address string) string {
	return address[strings.Index(address, "://")+1:]
}
