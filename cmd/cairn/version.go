package main

import (
	"fmt"
	"runtime/debug"
)

type versionCmd struct{}

// Help implements kong.HelpProvider.
func (*versionCmd) Help() string {
	return `One "name value" a line: module version, commit and its time, whether the checkout was modified, and the Go version. What the build did not record is left out.

Example:

    cairn version`
}

// Run implements the verb.
func (*versionCmd) Run(env *env) error {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return fmt.Errorf("this binary carries no build information")
	}
	rows := [][2]string{{"version", info.Main.Version}}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			rows = append(rows, [2]string{"commit", s.Value})
		case "vcs.time":
			rows = append(rows, [2]string{"time", s.Value})
		case "vcs.modified":
			rows = append(rows, [2]string{"modified", s.Value})
		}
	}
	rows = append(rows, [2]string{"go", info.GoVersion})
	for _, row := range rows {
		if row[1] == "" {
			continue
		}
		if _, err := fmt.Fprintf(env.out, "%-9s%s\n", row[0], row[1]); err != nil {
			return err
		}
	}
	return nil
}
