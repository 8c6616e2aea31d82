package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/andybalholm/brotli"
)

// compressed returns the forms of a file by name: plain, and .br and .gz where smaller.
func compressed(name string, body []byte) (map[string][]byte, error) {
	forms := map[string][]byte{name: body}
	var br, gz bytes.Buffer
	zw, err := gzip.NewWriterLevel(&gz, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	for _, w := range []io.WriteCloser{brotli.NewWriterLevel(&br, brotli.BestCompression), zw} {
		if _, err := w.Write(body); err != nil {
			return nil, err
		}
		if err := w.Close(); err != nil {
			return nil, err
		}
	}
	for ext, form := range map[string][]byte{".br": br.Bytes(), ".gz": gz.Bytes()} {
		if len(form) < len(body) {
			forms[name+ext] = form
		}
	}
	return forms, nil
}

func smallest(forms map[string][]byte) int {
	size := -1
	for _, form := range forms {
		if size < 0 || len(form) < size {
			size = len(form)
		}
	}
	return size
}

// thirdParty lists every package in the bundle with its version and full licence. A package without a licence file is an
// error, because it must not be redistributed.
func thirdParty(folder string, meta metafile) ([]byte, error) {
	var text bytes.Buffer
	fmt.Fprintln(&text, "The scripts and style sheets served beside this file contain the following packages.")
	for _, name := range meta.packages() {
		root := filepath.Join(folder, "node_modules", filepath.FromSlash(name))
		about, err := os.ReadFile(filepath.Join(root, "package.json"))
		if err != nil {
			return nil, fmt.Errorf("read package %s: %w", name, err)
		}
		var p struct {
			Version string `json:"version"`
			License string `json:"license"`
		}
		if err := json.Unmarshal(about, &p); err != nil {
			return nil, fmt.Errorf("read package %s: %w", name, err)
		}
		licence, err := licenceOf(root)
		if err != nil {
			return nil, fmt.Errorf("find the licence of %s: %w", name, err)
		}
		fmt.Fprintf(&text, "\n%s\n%s %s (%s)\n\n%s\n", strings.Repeat("─", 80), name, p.Version, p.License, licence)
	}
	return text.Bytes(), nil
}

func licenceOf(root string) (string, error) {
	found, err := os.ReadDir(root)
	if err != nil {
		return "", err
	}
	for _, f := range found {
		name := strings.ToUpper(f.Name())
		if strings.HasPrefix(name, "LICEN") || strings.HasPrefix(name, "COPYING") {
			text, err := os.ReadFile(filepath.Join(root, f.Name()))
			return strings.TrimSpace(string(text)), err
		}
	}
	return "", os.ErrNotExist
}
