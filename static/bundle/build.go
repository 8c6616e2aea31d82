package main

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"

	"sandboxd/static"
)

// shared is bundled first; the modules in it are imported from there by all others (static/js/shared.js says why).
var shared = []api.EntryPoint{{InputPath: "js/shared.js", OutputPath: "shared"}}

// entries are the files that pages refer to; their imports are bundled into them or into chunks that several need.
var entries = []api.EntryPoint{
	{InputPath: "css/app.css", OutputPath: "app"},
	{InputPath: "js/app.js", OutputPath: "app"},
	{InputPath: "js/workspace.js", OutputPath: "workspace"},
	{InputPath: "plots/plots.js", OutputPath: "plots"},
	{InputPath: "chat/reader.js", OutputPath: "reader"}, // a shared conversation
	{InputPath: "terminal/page.js", OutputPath: "solo"}, // a sandbox's own host
	{InputPath: "icon.svg", OutputPath: "icon"},
	{InputPath: "touch.png", OutputPath: "touch"},
}

// worker is the service worker, which is one file: not all browsers let it import others.
var worker = []api.EntryPoint{{InputPath: "worker/worker.js", OutputPath: "worker"}}

// build runs esbuild over shared and the entries without writing anything.
func build(folder string) ([]api.OutputFile, metafile, error) {
	built, meta, err := bundle(folder, shared)
	if err != nil {
		return nil, metafile{}, err
	}
	var inside []string
	for _, out := range meta.Outputs {
		for input := range out.Inputs {
			inside = append(inside, filepath.Join(folder, input))
		}
	}
	others, rest, err := bundle(folder, entries, addresses, taken(inside, filepath.Base(built[0].Path)))
	if err != nil {
		return nil, metafile{}, err
	}
	alone, its, err := bundle(folder, worker)
	maps.Copy(meta.Outputs, rest.Outputs)
	maps.Copy(meta.Outputs, its.Outputs)
	return slices.Concat(built, others, alone), meta, err
}

func bundle(folder string, entries []api.EntryPoint, plugins ...api.Plugin) ([]api.OutputFile, metafile, error) {
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
		Loader:              map[string]api.Loader{".svg": api.LoaderCopy, ".png": api.LoaderCopy, ".woff2": api.LoaderFile},
		Plugins:             plugins,
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

// taken has the modules inside be imported from the file that holds them.
func taken(inside []string, file string) api.Plugin {
	return api.Plugin{Name: "taken", Setup: func(b api.PluginBuild) {
		b.OnResolve(api.OnResolveOptions{Filter: `^\.\.?/.*\.js$`}, func(a api.OnResolveArgs) (api.OnResolveResult, error) {
			if slices.Contains(inside, filepath.Join(a.ResolveDir, a.Path)) {
				return api.OnResolveResult{Path: "./" + file, External: true}, nil
			}
			return api.OnResolveResult{}, nil
		})
	}}
}

// metafile is the used part of esbuild's report. Paths are relative to the folder of the sources.
type metafile struct {
	Outputs map[string]struct {
		EntryPoint string              `json:"entryPoint"`
		CSSBundle  string              `json:"cssBundle"`
		Inputs     map[string]struct{} `json:"inputs"`
		Imports    []imported          `json:"imports"`
	} `json:"outputs"`
}

type imported struct {
	Path     string `json:"path"`
	Kind     string `json:"kind"`
	External bool   `json:"external"`
}

// contents lists each entry ("app.js"), the style sheet that an entry's modules import ("workspace.css"), and each font by its
// own name, and the scripts that each entry needs at once.
func (m metafile) contents() static.Contents {
	files, needs := map[string]string{}, map[string][]string{}
	for path, out := range m.Outputs {
		for input := range out.Inputs {
			if filepath.Ext(path) == ".woff2" {
				files[filepath.Base(input)] = filepath.Base(path)
			}
		}
	}
	for _, e := range slices.Concat(entries, worker) {
		for path, out := range m.Outputs {
			if out.EntryPoint != e.InputPath {
				continue
			}
			name := e.OutputPath + filepath.Ext(path)
			files[name] = filepath.Base(path)
			if all := m.needs(path, nil); len(all) > 0 {
				needs[name] = all
			}
			if out.CSSBundle != "" {
				files[e.OutputPath+".css"] = filepath.Base(out.CSSBundle)
			}
		}
	}
	return static.Contents{Files: files, Needs: needs}
}

// needs adds the files that one imports, and those that they import, to found.
func (m metafile) needs(path string, found []string) []string {
	for _, i := range m.Outputs[path].Imports {
		name := filepath.Base(i.Path)
		if i.Kind != "import-statement" || slices.Contains(found, name) {
			continue
		}
		found = m.needs(i.Path, append(found, name))
	}
	return found
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
