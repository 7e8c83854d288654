// Command pack puts each built function into a zip that Lambda takes as it is:
//
//	go run ./infra/pack dist checkpoint recover retention
//
// makes dist/<function>.zip of dist/<function>/bootstrap and says their sizes.
// The same binary always gives the same bytes: one entry, no time, no owner.
// (The CDK makes its own archives of the directories; these are for deploying
// without it, and for comparing builds.)
package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: pack <directory> <function>...")
		os.Exit(2)
	}
	for _, name := range os.Args[2:] {
		if err := pack(os.Args[1], name, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "pack:", err)
			os.Exit(1)
		}
	}
}

// pack makes <dir>/<name>.zip; a crash leaves the old one.
func pack(dir, name string, report io.Writer) error {
	binary, err := os.ReadFile(filepath.Join(dir, name, "bootstrap"))
	if err != nil {
		return err
	}
	archive, err := archiveOf(binary)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, name+".zip")
	if err := os.WriteFile(path+".new", archive, 0o644); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	fmt.Fprintf(report, "%s: binary %.1f MiB, zip %.1f MiB\n", path, megabytes(len(binary)), megabytes(len(archive)))
	return nil
}

// archiveOf is a zip with the one executable file bootstrap.
func archiveOf(binary []byte) ([]byte, error) {
	var buffer bytes.Buffer
	w := zip.NewWriter(&buffer)
	w.RegisterCompressor(zip.Deflate, func(out io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(out, flate.BestCompression)
	})
	header := &zip.FileHeader{Name: "bootstrap", Method: zip.Deflate} // no time: the zero one
	header.SetMode(0o755)
	file, err := w.CreateHeader(header)
	if err != nil {
		return nil, err
	}
	if _, err := file.Write(binary); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

func megabytes(n int) float64 { return float64(n) / (1 << 20) }
