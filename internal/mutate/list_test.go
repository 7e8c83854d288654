package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// Every mutant changes a text that is there exactly once, and has a name of its
// own: a rule that was rewritten is not left out in silence.
func TestMutantsFit(t *testing.T) {
	names := map[string]bool{}
	for _, m := range mutants {
		if names[m.Name] {
			t.Errorf("two mutants are named %q", m.Name)
		}
		names[m.Name] = true
		source, err := os.ReadFile(filepath.Join("..", "..", m.File))
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(source, []byte(m.Old)); n != 1 || m.Old == m.New {
			t.Errorf("%s: the text is %d times in %s", m.Name, n, m.File)
		}
	}
	if len(mutants) < 60 {
		t.Errorf("%d mutants", len(mutants))
	}
}
