package main

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The same binary gives the same archive whenever, wherever and by whomever it
// is packed, and Lambda can execute what is in it.
func TestPackIsReproducible(t *testing.T) {
	t.Parallel()
	binary := bytes.Repeat([]byte("\x7fELF and so on "), 10000)
	var archives [][]byte
	for i := range 2 {
		dir := t.TempDir()
		file := filepath.Join(dir, "checkpoint", "bootstrap")
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, binary, 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Unix(int64(1e9*(i+1)), 0)
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
		if err := pack(dir, "checkpoint", io.Discard); err != nil {
			t.Fatal(err)
		}
		archive, err := os.ReadFile(filepath.Join(dir, "checkpoint.zip"))
		if err != nil {
			t.Fatal(err)
		}
		archives = append(archives, archive)
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Fatal("two archives of one binary differ")
	}
	r, err := zip.NewReader(bytes.NewReader(archives[0]), int64(len(archives[0])))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.File) != 1 || r.File[0].Name != "bootstrap" || r.File[0].Mode() != 0o755 {
		t.Fatalf("entries: %v", r.File)
	}
	entry, err := r.File[0].Open()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(entry); err != nil || !bytes.Equal(got, binary) {
		t.Fatalf("%d bytes came back, %v", len(got), err)
	}
}

func TestPackWithoutBinary(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := pack(dir, "recover", io.Discard); err == nil {
		t.Fatal("packed nothing without an error")
	}
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Fatalf("left %v", files)
	}
}
