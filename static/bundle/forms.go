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
		licence, err := licenceOf(root, p.License)
		if err != nil {
			return nil, fmt.Errorf("find the licence of %s: %w", name, err)
		}
		fmt.Fprintf(&text, "\n%s\n%s %s (%s)\n\n%s\n", strings.Repeat("─", 80), name, p.Version, p.License, licence)
	}
	return text.Bytes(), nil
}

// unlicensed are packages with the author's notice in their source, and the text of the MIT licence nowhere.
var unlicensed = map[string]string{"qrcode-generator": "Copyright (c) 2009 Kazuhiko Arase"}

// mit is the text of the licence, which is the same for all.
const mit = `Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the
"Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish,
distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to
the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY
CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE
SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.`

func licenceOf(root, named string) (string, error) {
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
	if notice, ok := unlicensed[filepath.Base(root)]; ok && named == "MIT" {
		return "MIT License\n\n" + notice + "\n\n" + mit, nil
	}
	return "", os.ErrNotExist
}
