package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// mutant is one rule taken away.
type mutant struct {
	Name string
	File string // from the module's root
	Old  string // occurs exactly once
	New  string
	// Tests are the packages that must notice, Run narrows their tests.
	Tests string
	Run   string
}

func main() {
	only := flag.String("only", "", "a regular expression that the name must match")
	every := flag.Int("every", 1, "each n-th mutant")
	first := flag.Int("first", 0, "where to begin counting")
	jobs := flag.Int("jobs", 1, "at a time")
	timeout := flag.Duration("timeout", 5*time.Minute, "of one mutant's tests")
	list := flag.Bool("list", false, "print the mutants")
	tests := flag.String("tests", "", "packages to run instead of a mutant's own")
	args := flag.String("run", "", "with -tests: which of their tests")
	flag.Parse()
	match, err := regexp.Compile(*only)
	if err != nil {
		fatal(err)
	}
	var picked []mutant
	for i, m := range mutants {
		if match.MatchString(m.Name) && (i-*first)%*every == 0 {
			if *tests != "" {
				m.Tests, m.Run = *tests, *args
			}
			picked = append(picked, m)
		}
	}
	if *list {
		for _, m := range picked {
			fmt.Printf("%-48s %s\n", m.Name, m.File)
		}
		return
	}
	root, err := moduleRoot()
	if err != nil {
		fatal(err)
	}
	if failed := run(root, picked, *jobs, *timeout); failed > 0 {
		os.Exit(1)
	}
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, "mutate:", err)
	os.Exit(1)
}

func moduleRoot() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("not inside the module: %w", err)
	}
	root, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return root, nil
}

// run tries the mutants and returns how many were not killed.
func run(root string, picked []mutant, jobs int, timeout time.Duration) int {
	began := time.Now()
	var mu sync.Mutex
	var bad []string
	var group sync.WaitGroup
	turn := make(chan struct{}, max(jobs, 1))
	for i, m := range picked {
		turn <- struct{}{}
		group.Go(func() {
			defer func() { <-turn }()
			start := time.Now()
			verdict := try(root, m, timeout)
			mu.Lock()
			defer mu.Unlock()
			fmt.Printf("%3d/%d %-9s %-48s %6.1fs\n", i+1, len(picked), verdict, m.Name, time.Since(start).Seconds())
			if verdict != killed {
				bad = append(bad, fmt.Sprintf("%s: %s (%s)", verdict, m.Name, m.File))
			}
		})
	}
	group.Wait()
	fmt.Printf("mutants: %d tried, %d killed, %d not, in %v\n", len(picked), len(picked)-len(bad), len(bad), time.Since(began).Round(time.Second))
	for _, b := range bad {
		fmt.Println("  " + b)
	}
	return len(bad)
}

// Verdicts on a mutant.
const (
	killed   = "killed"
	survived = "SURVIVED"
	broken   = "BROKEN" // the text is not there once, or the result does not compile
)

func try(root string, m mutant, timeout time.Duration) string {
	path := filepath.Join(root, m.File)
	source, err := os.ReadFile(path)
	if err != nil || bytes.Count(source, []byte(m.Old)) != 1 {
		return broken
	}
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return broken
	}
	defer os.RemoveAll(dir)
	changed := filepath.Join(dir, "mutant.go")
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{path: changed}})
	if err != nil {
		return broken
	}
	where := filepath.Join(dir, "overlay.json")
	if os.WriteFile(changed, bytes.Replace(source, []byte(m.Old), []byte(m.New), 1), 0o600) != nil || os.WriteFile(where, overlay, 0o600) != nil {
		return broken
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	packages := strings.Fields(m.Tests)
	// The quick tests of all packages come before the slow ones of any.
	passes := [][]string{{"-skip", slow}, {"-run", slow}}
	if m.Run != "" {
		passes = [][]string{{"-run", m.Run}}
	}
	for _, pass := range passes {
		for _, p := range packages {
			args := append([]string{"test", "-overlay", where, "-count=1", "-failfast", "-short", "-vet=off"}, pass...)
			cmd := exec.CommandContext(ctx, "go", append(args, p)...)
			cmd.Dir = root
			out, err := cmd.CombinedOutput()
			switch {
			case err == nil:
			case bytes.Contains(out, []byte("[build failed]")) || bytes.Contains(out, []byte("[setup failed]")):
				return broken
			default:
				return killed // by a failing test, or by one that never ended
			}
		}
	}
	return survived
}

// slow are tests that take more than a second.
const slow = "Crash|Damage|Large|Flat|10000|LongChains|Oversize|Snapshot|Race|Concurrent|Forgotten|Properties|Fuzz|Struck|Cost|Purge"
