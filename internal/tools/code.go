package tools

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"sandboxd/internal/access"
	"sandboxd/internal/exec"
	"sandboxd/internal/tools/risk"
	"sandboxd/internal/wire"
)

// language is one in which code is run.
type language struct {
	names []string
	file  string
	run   string // the program, with its arguments
}

// languages are those of run_code, by the first of their names.
var languages = []language{
	{[]string{"python", "py", "python3"}, "main.py", "python3 -u"},
	{[]string{"javascript", "js", "node"}, "main.mjs", "node"},
	{[]string{"typescript", "ts"}, "main.ts", "node --experimental-strip-types --no-warnings"},
	{[]string{"bash", "shell", "sh"}, "main.sh", "bash"},
	{[]string{"ruby", "rb"}, "main.rb", "ruby"},
	{[]string{"perl", "pl"}, "main.pl", "perl"},
	{[]string{"php"}, "main.php", "php"},
	{[]string{"go"}, "main.go", "go run"},
	{[]string{"r"}, "main.R", "Rscript"},
	{[]string{"lua"}, "main.lua", "lua"},
}

// languageOf finds one by any of its names.
func languageOf(name string) (language, bool) {
	i := slices.IndexFunc(languages, func(l language) bool { return slices.Contains(l.names, strings.ToLower(name)) })
	if i < 0 {
		return language{}, false
	}
	return languages[i], true
}

// RunsCode says whether run_code knows a language by that name.
func RunsCode(name string) bool {
	_, ok := languageOf(name)
	return ok
}

// Bounds of the pictures of a run.
const (
	maxPictures = 4
	maxPicture  = 5 << 20 // bytes
)

func (t *table) runCode() spec {
	known := make([]string, len(languages))
	for i, l := range languages {
		known[i] = l.names[0]
	}
	return spec{
		name: "run_code", title: "Run code", changes: true,
		description: "Run a piece of code in the sandbox, in its home, and get its output and exit code, as run_command gives them. " +
			"Nothing of it outlives the call but what it writes to files. Pictures (PNG, JPEG, WebP, GIF) that it writes to the folder in the environment variable OUTPUT are shown.",
		params: []param{
			{name: "language", kind: isText, required: true, about: "One of " + strings.Join(known, ", ") + "."},
			{name: "code", kind: isText, required: true, about: "The code."},
			{name: "folder", kind: isText, about: "The folder to run it in; the home if you say nothing."},
			waitParam,
		},
		preview: func(a args) Preview {
			name := a.text("language")
			if l, ok := languageOf(name); ok {
				name = l.names[0]
			}
			return Preview{Code: a.text("code"), Language: name, Folder: a.text("folder"), Risk: atLeast(risk.Code(name, a.text("code")), risk.Changing).Join(hiddenIn(a.text("folder")))}
		},
		run: func(ctx context.Context, a args, out io.Writer) (Result, error) {
			l, ok := languageOf(a.text("language"))
			if !ok {
				return failed(fmt.Sprintf("Code of the language %q cannot be run. Use one of %s, or write it to a file and run that with run_command.", plain(shorten(a.text("language"), 40)), strings.Join(known, ", "))), nil
			}
			return t.codeOrder(ctx, a, out, l)
		},
	}
}

func atLeast(j risk.Judgement, level risk.Level) risk.Judgement {
	j.Level = max(j.Level, level)
	return j
}

// codeOrder writes the code to a folder of its own and runs it.
func (t *table) codeOrder(ctx context.Context, a args, out io.Writer, l language) (Result, error) {
	request, folder, err := t.putCode(ctx, t.seat.Handle, l, a.text("code"))
	if err != nil {
		return ended(ctx, err)
	}
	request.Cwd = t.folder(a.text("folder"))
	return t.runOrder(ctx, a, out, order{request: request, after: func(ctx context.Context) []Image { return t.pictures(ctx, t.seat.Handle, folder) }})
}

// putCode writes code to a folder of its own, and gives the command that runs it.
func (s *Service) putCode(ctx context.Context, h access.Handle, l language, code string) (request exec.Request, folder string, err error) {
	var id [8]byte
	rand.Read(id[:])
	folder = "/tmp/code-" + hex.EncodeToString(id[:])
	if err := s.cfg.Files.Mkdir(ctx, h, folder+"/output", true); err != nil {
		return request, "", err
	}
	file := path.Join(folder, l.file)
	put := wire.FilePut{Path: file, Size: int64(len(code)), Mode: 0o600}
	if _, err := s.cfg.Files.Write(ctx, h, put, strings.NewReader(code)); err != nil {
		return request, "", err
	}
	line := fmt.Sprintf("%s %s; code=$?; rm -f %s; exit $code", l.run, file, file)
	return exec.Request{Command: exec.Shell(line), Env: map[string]string{"OUTPUT": folder + "/output", "MPLBACKEND": "Agg"}}, folder, nil
}

// pictures gives what a run has written to its folder, and deletes that. What cannot be read is left out.
func (s *Service) pictures(ctx context.Context, h access.Handle, folder string) (all []Image) {
	l, err := s.cfg.Files.List(ctx, h, folder+"/output", "", wire.MaxListing)
	if err == nil {
		for _, e := range l.Entries {
			if e.Type != wire.TypeFile || e.Size > maxPicture || len(all) == maxPictures {
				continue
			}
			if b, _, err := s.whole(ctx, h, path.Join(folder, "output", e.Name), maxPicture); err == nil {
				if mime := pictureType(b); mime != "" {
					all = append(all, Image{MIME: mime, Bytes: b})
				}
			}
		}
	}
	_, _ = s.cfg.Files.Delete(ctx, h, []string{folder}, true) // it is in /tmp: at worst it stays there
	return all
}
