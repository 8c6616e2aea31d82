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
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"

	"sandboxd/static"
)

// entries are the files that pages refer to; their imports are bundled into them or into shared chunks.
var entries = []api.EntryPoint{
	{InputPath: "css/app.css", OutputPath: "app"},
	{InputPath: "js/app.js", OutputPath: "app"},
	{InputPath: "js/workspace.js", OutputPath: "workspace"},
	{InputPath: "plots/plots.js", OutputPath: "plots"},
	{InputPath: "terminal/page.js", OutputPath: "solo"}, // a sandbox's own host
	{InputPath: "icon.svg", OutputPath: "icon"},
}

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
	names := meta.manifest()
	names["third-party.txt"] = text
	manifest, err := json.MarshalIndent(names, "", "  ")
	if err != nil {
		return err
	}
	return write(filepath.Join(folder, "dist"), files, manifest)
}

// build runs esbuild over the entries without writing anything.
func build(folder string) ([]api.OutputFile, metafile, error) {
	result := api.Build(api.BuildOptions{
		AbsWorkingDir:       folder,
		EntryPointsAdvanced: entries,
		Outdir:              filepath.Join(folder, "dist"),
		EntryNames:          "[name]-[hash]",
		ChunkNames:          "chunk-[hash]",
		AssetNames:          "[name]-[hash]",
		Bundle:              true,
		Splitting:           true,
		Format:              api.FormatESModule,
		Target:              api.ES2022,
		MinifyWhitespace:    true,
		MinifyIdentifiers:   true,
		MinifySyntax:        true,
		Metafile:            true,
		LegalComments:       api.LegalCommentsNone, // third-party.txt carries the licences in full
		Loader:              map[string]api.Loader{".svg": api.LoaderCopy},
		Plugins:             []api.Plugin{addresses},
	})
	if len(result.Errors) > 0 {
		lines := api.FormatMessages(result.Errors, api.FormatMessagesOptions{})
		return nil, metafile{}, errors.New(strings.Join(lines, ""))
	}
	var meta metafile
	err := json.Unmarshal([]byte(result.Metafile), &meta)
	return result.OutputFiles, meta, err
}

// addresses lets a module import the URL of another file ("…?url"), which is copied unchanged. Workers need that.
var addresses = api.Plugin{Name: "addresses", Setup: func(b api.PluginBuild) {
	b.OnResolve(api.OnResolveOptions{Filter: `\?url$`}, func(a api.OnResolveArgs) (api.OnResolveResult, error) {
		found := b.Resolve(strings.TrimSuffix(a.Path, "?url"), api.ResolveOptions{ResolveDir: a.ResolveDir, Kind: a.Kind})
		return api.OnResolveResult{Path: found.Path, Namespace: "address", Errors: found.Errors}, nil
	})
	b.OnLoad(api.OnLoadOptions{Filter: `.`, Namespace: "address"}, func(a api.OnLoadArgs) (api.OnLoadResult, error) {
		body, err := os.ReadFile(a.Path)
		text := string(body)
		return api.OnLoadResult{Contents: &text, Loader: api.LoaderFile}, err
	})
}}

// metafile is the used part of esbuild's report. Paths are relative to the folder of the sources.
type metafile struct {
	Outputs map[string]struct {
		EntryPoint string              `json:"entryPoint"`
		CSSBundle  string              `json:"cssBundle"`
		Inputs     map[string]struct{} `json:"inputs"`
	} `json:"outputs"`
}

// manifest maps each entry ("app.js"), and the style sheet that an entry's modules import ("workspace.css"), to the
// file that holds it.
func (m metafile) manifest() map[string]string {
	files := map[string]string{}
	for _, e := range entries {
		for path, out := range m.Outputs {
			if out.EntryPoint != e.InputPath {
				continue
			}
			files[e.OutputPath+filepath.Ext(path)] = filepath.Base(path)
			if out.CSSBundle != "" {
				files[e.OutputPath+".css"] = filepath.Base(out.CSSBundle)
			}
		}
	}
	return files
}

// packages returns the third-party packages in the bundle, sorted.
func (m metafile) packages() []string {
	var names []string
	for _, out := range m.Outputs {
		for input := range out.Inputs {
			_, rest, ok := strings.Cut(input, "node_modules/")
			if !ok {
				continue
			}
			parts := strings.SplitN(rest, "/", 3)
			name := parts[0]
			if strings.HasPrefix(name, "@") && len(parts) > 1 {
				name += "/" + parts[1]
			}
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// write writes files, their compressed forms and the manifest to dist, and removes files of earlier runs.
func write(dist string, files map[string][]byte, manifest []byte) error {
	keep := map[string]bool{".keep": true, static.Manifest: true}
	var report []string
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
		report = append(report, fmt.Sprintf("%-32s %7d bytes, %6d compressed", name, len(body), smallest(forms)))
	}
	if err := os.WriteFile(filepath.Join(dist, static.Manifest), append(manifest, '\n'), 0o644); err != nil {
		return err
	}
	slices.Sort(report)
	fmt.Println(strings.Join(report, "\n"))
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
