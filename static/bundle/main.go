// Command bundle builds static/dist from static/ and the pinned packages of static/node_modules: minified, split, named by
// content, compressed, with a manifest and the licences of all third-party code.
//
// It fetches nothing (npm ci does) and is not part of the server.
//
// Invariant: new files are written first, then the manifest, and then old files are removed, so a concurrent build never sees
// a manifest without its files.
//
// Usage: go run ./static/bundle [folder of the sources, by default static]
package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sandboxd/static"
)

func main() {
	folder := "static"
	if len(os.Args) > 1 {
		folder = os.Args[1]
	}
	if err := run(folder); err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

func run(folder string) error {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(folder, "node_modules")); err != nil {
		return errors.New("static/node_modules is missing: run “npm ci --ignore-scripts” in static/ first")
	}
	built, meta, err := build(folder)
	if err != nil {
		return err
	}
	licences, err := thirdParty(folder, meta)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("third-party-%.4X.txt", sha256.Sum256(licences))
	files := map[string][]byte{text: licences}
	for _, f := range built {
		files[filepath.Base(f.Path)] = f.Contents
	}
	contents := meta.contents()
	contents.Files["third-party.txt"] = text
	manifest, err := json.MarshalIndent(contents, "", "  ")
	if err != nil {
		return err
	}
	return write(filepath.Join(folder, "dist"), files, manifest)
}

// write writes files, their compressed forms and the manifest to dist, and removes files of earlier runs.
func write(dist string, files map[string][]byte, manifest []byte) error {
	keep := map[string]bool{".keep": true, static.Manifest: true}
	raw, small := 0, 0
	for name, body := range files {
		forms, err := compressed(name, body)
		if err != nil {
			return fmt.Errorf("compress %s: %w", name, err)
		}
		for form, body := range forms {
			keep[form] = true
			if err := os.WriteFile(filepath.Join(dist, form), body, 0o644); err != nil {
				return err
			}
		}
		raw, small = raw+len(body), small+smallest(forms)
	}
	if err := os.WriteFile(filepath.Join(dist, static.Manifest), append(manifest, '\n'), 0o644); err != nil {
		return err
	}
	fmt.Printf("%d files for the browser: %d kB, compressed %d kB\n", len(files), raw/1000, small/1000)
	return sweep(dist, keep)
}

func sweep(dist string, keep map[string]bool) error {
	found, err := os.ReadDir(dist)
	if err != nil {
		return err
	}
	for _, f := range found {
		if keep[f.Name()] {
			continue
		}
		if err := os.Remove(filepath.Join(dist, f.Name())); err != nil {
			return err
		}
	}
	return nil
}
