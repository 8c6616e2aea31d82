package risk

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxDepth bounds commands within commands.
const maxDepth = 5

// Command judges a line, or a whole script, of a shell.
func Command(line string) Judgement {
	j := &judge{}
	j.hidden(line)
	j.script(line)
	return j.Judgement
}

// judge reads one command line.
type judge struct {
	Judgement
	depth   int
	numbers []string // variables of the script that is read that have numbers only
}

// maxScript bounds what is read, because that takes time and memory.
const maxScript = 64 << 10

// script judges the text of a script.
func (j *judge) script(text string) {
	if len(text) > maxScript {
		j.add(Risky, "it is too long to be judged")
		return
	}
	if j.depth++; j.depth > maxDepth {
		j.add(Risky, "it has commands within commands within commands")
		return
	}
	defer func() { j.depth-- }()
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		j.add(Risky, "it cannot be read as a command line")
		return
	}
	before := j.numbers
	j.numbers = numbersOf(file)
	defer func() { j.numbers = before }()
	syntax.Walk(file, func(n syntax.Node) bool {
		j.node(n)
		j.evaluation(n)
		return true
	})
}

// node judges one part of a script; the parts in it come by themselves.
func (j *judge) node(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.CallExpr:
		j.call(n)
	case *syntax.Redirect:
		j.redirect(n)
	case *syntax.FuncDecl:
		j.add(Risky, "it gives a command another meaning")
	case *syntax.BinaryCmd:
		j.pipe(n)
	case *syntax.Stmt:
		if n.Background || n.Coprocess {
			j.add(Changing, "")
		}
	case *syntax.DeclClause:
		for _, a := range n.Args {
			j.declares(a)
		}
	case *syntax.Assign:
		if n.Index != nil {
			j.computes(n.Index)
		}
	case *syntax.CoprocClause, *syntax.TestDecl:
		j.add(Risky, "it cannot be told what it does")
	}
}

// lookups are variables by which other programs are run, or that are themselves run.
var lookups = []string{"PATH", "BASH_ENV", "ENV", "IFS", "PROMPT_COMMAND", "PS0", "PS4", "SHELLOPTS", "BASHOPTS", "PAGER", "MANPAGER", "EDITOR", "VISUAL", "SHELL", "HOME", "XDG_CONFIG_HOME", "LESSOPEN", "LESSCLOSE",
	"PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "NODE_OPTIONS", "NODE_PATH", "PERL5OPT", "PERL5LIB", "RUBYOPT", "RUBYLIB", "RIPGREP_CONFIG_PATH"}

func (j *judge) assign(a *syntax.Assign) {
	if a.Name != nil {
		j.setsVariable(a.Name.Value)
	}
}

func (j *judge) setsVariable(name string) {
	if slices.Contains(lookups, name) || strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "GIT_") {
		j.add(Risky, "it changes which programs are run")
	}
}

// harmlessTargets are files that nothing is written to.
var harmlessTargets = []string{"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"}

func (j *judge) redirect(r *syntax.Redirect) {
	switch r.Op {
	case syntax.RdrIn, syntax.DplIn, syntax.DplOut, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		if target, known := literal(r.Word); r.Op == syntax.RdrIn && known && strings.HasPrefix(target, "/dev/tcp/") {
			j.add(Risky, "it opens a connection")
		}
		return
	}
	target, known := literal(r.Word)
	switch {
	case !known:
		j.add(Risky, "it writes to a file that is not known before")
	case slices.Contains(harmlessTargets, target):
	case strings.HasPrefix(target, "/dev/"):
		j.add(Risky, "it writes to a device, or opens a connection")
	default:
		written := Path(target)
		j.Judgement = j.Join(written)
	}
}

// pipe looks for a program that runs what comes out of another one.
func (j *judge) pipe(n *syntax.BinaryCmd) {
	if n.Op != syntax.Pipe && n.Op != syntax.PipeAll {
		return
	}
	call, ok := n.Y.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 {
		return
	}
	if name, _ := literal(call.Args[0]); slices.Contains(interpreters, path.Base(name)) {
		j.add(Risky, "it runs what another program puts out")
	}
}

// interpreters run what they read.
var interpreters = []string{"sh", "bash", "dash", "zsh", "ksh", "fish", "ash", "busybox", "python", "python3", "node", "deno", "ruby", "perl", "php", "lua", "xargs", "source", "sudo", "psql", "mysql", "sqlite3"}

// literal gives the text of a word, if that is known before it runs.
func literal(w *syntax.Word) (string, bool) {
	if w == nil {
		return "", false
	}
	var b strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(unescape(p.Value))
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			for _, inner := range p.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok {
					return "", false
				}
				b.WriteString(unescape(lit.Value))
			}
		default:
			return "", false
		}
	}
	return b.String(), true
}

// unescape takes backslashes away, as a shell does.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
			if s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func (j *judge) call(c *syntax.CallExpr) {
	for _, a := range c.Assigns {
		j.assign(a)
	}
	if len(c.Args) == 0 {
		return
	}
	words := make([]word, len(c.Args))
	for i, w := range c.Args {
		words[i].text, words[i].known = literal(w)
	}
	j.words(words)
}

// word is a word of a call. text is "" when it is not known before.
type word struct {
	text  string
	known bool
}

// words judges a call by its words.
func (j *judge) words(words []word) {
	if len(words) == 0 {
		return
	}
	first := words[0]
	if !first.known || first.text == "" {
		j.add(Risky, "the name of a command is not known before it runs")
		return
	}
	name := first.text
	j.setsByName(name, words[1:])
	if strings.Contains(name, "/") {
		base := path.Base(name)
		if dir := path.Dir(name); dir != "/bin" && dir != "/usr/bin" && dir != "/usr/local/bin" && dir != "/sbin" && dir != "/usr/sbin" {
			j.add(Risky, short(name)+": a program that is not known")
			return
		}
		name = base
	}
	j.known(name, words[1:])
}

// setters are commands of the shell that set, or look at, the variables that they are given the names of.
var setters = []string{"read", "mapfile", "readarray", "printf", "getopts", "wait", "unset", "test", "[", "let", "export", "declare", "typeset", "local", "readonly"}

// setsByName judges names of variables in a call: commands may stand in their index.
func (j *judge) setsByName(name string, args []word) {
	if !slices.Contains(setters, name) || name == "printf" && (len(args) == 0 || args[0].known && !strings.HasPrefix(args[0].text, "-")) {
		return
	}
	tests := name == "test" || name == "["
	for i, a := range args {
		if tests && (i == 0 || args[i-1].text != "-v" && args[i-1].text != "-R") {
			continue
		}
		j.setsVariable(a.text)
		if !a.known || strings.ContainsAny(a.text, "[`$") || name == "let" {
			j.add(Risky, computed)
		}
	}
}

// short bounds a name in a reason.
func short(name string) string {
	if len(name) > 40 {
		return name[:40] + "…"
	}
	return name
}
