package risk

import (
	"slices"
	"strings"
)

// known judges a command by its rule.
func (j *judge) known(name string, args []word) {
	if inner, ok := shellScript(name, args); ok {
		j.script(inner)
		return
	}
	r := table().byName[name]
	if r == nil && strings.HasPrefix(name, "mkfs.") {
		r = table().byName["mkfs"]
	}
	if r == nil {
		j.add(Risky, short(name)+": a program that is not known")
		return
	}
	if onlyHelp(args) || name == "command" && len(args) > 0 && args[0].text == "-v" { // where a program is
		return
	}
	sub, subKnown := subcommand(args, r.Takes)
	level, why := r.Level, r.Why
	if of, ok := r.Sub[sub]; ok && subKnown {
		level = of
	}
	if len(r.Sub) > 0 && !subKnown {
		level, why = Risky, "what it is to do is not known before it runs"
	}
	j.add(level, reason(name, why))
	for _, c := range r.When {
		if c.holds(name, sub, args) {
			j.add(c.Level, reason(name, c.Why))
		}
	}
	j.network(name, args)
	if r.Writes > 0 {
		j.written(args, r.Writes)
	}
	if j.Level > Harmless {
		j.trusted(name, args)
	}
	if r.Of != nil {
		j.wrapped(r.Of, args)
	}
}

func reason(name, why string) string {
	if why == "" {
		why = "this may destroy or send away something"
	}
	return name + ": " + why
}

// onlyHelp says whether a program is only asked about itself.
func onlyHelp(args []word) bool {
	return len(args) == 1 && args[0].known && (args[0].text == "--help" || args[0].text == "--version")
}

// shellScript gives the script of a call such as bash -c 'script'.
func shellScript(name string, args []word) (string, bool) {
	switch name {
	case "bash", "sh", "dash", "zsh", "ash", "ksh":
	default:
		return "", false
	}
	if len(args) < 2 || !args[0].known || !args[1].known || !strings.HasPrefix(args[0].text, "-") || strings.HasPrefix(args[0].text, "--") || !strings.HasSuffix(args[0].text, "c") ||
		strings.Trim(args[0].text, "-lcex") != "" {
		return "", false
	}
	return args[1].text, true
}

// subcommand gives the first word that is no option and no value of one.
func subcommand(args []word, takes []string) (sub string, known bool) {
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case !a.known:
			return "", false
		case slices.Contains(takes, a.text):
			i++
		case !strings.HasPrefix(a.text, "-"):
			return a.text, true
		}
	}
	return "", true
}

// holds says whether a condition is met by a call.
func (c *condition) holds(name, sub string, args []word) bool {
	if len(c.Commands) > 0 && !slices.Contains(c.Commands, name) || len(c.Sub) > 0 && !slices.Contains(c.Sub, sub) {
		return false
	}
	if len(c.Flags) > 0 && !slices.ContainsFunc(args, func(a word) bool { return !a.known && c.Level == Risky || c.hasFlag(a.text) }) {
		return false
	}
	if c.match == nil {
		return true
	}
	rest := args
	if len(c.Sub) > 0 { // the subcommand itself is no argument
		if i := slices.IndexFunc(args, func(a word) bool { return a.text == sub }); i >= 0 {
			rest = args[i+1:]
		}
	}
	return slices.ContainsFunc(rest, func(a word) bool { return a.known && c.match.MatchString(a.text) })
}

// hasFlag says whether a word is one of the options, or has one in it.
func (c *condition) hasFlag(arg string) bool {
	for _, flag := range c.Flags {
		switch {
		case arg == flag || strings.HasPrefix(arg, flag+"="):
			return true
		case len(flag) == 2 && len(arg) > 2 && arg[0] == '-' && arg[1] != '-' && strings.IndexByte(arg[1:], flag[1]) >= 0:
			return true
		case strings.HasPrefix(flag, "--") && len(arg) > 4 && strings.HasPrefix(arg, "--") && strings.HasPrefix(flag, arg): // shortened
			return true
		}
	}
	return false
}

// network judges addresses that are put together when the command runs: what is read may be sent away in them.
func (j *judge) network(name string, args []word) {
	if name != "curl" && name != "wget" {
		return
	}
	if slices.ContainsFunc(args, func(a word) bool { return !a.known }) {
		j.add(Risky, reason(name, "where it goes is not known before it runs"))
	}
}

// written judges the file that stands at a place among the words that are no options.
func (j *judge) written(args []word, place int) {
	for _, a := range args {
		switch {
		case !a.known:
			j.add(Risky, "it writes to a file that is not known before")
		case a.text == "-" || !strings.HasPrefix(a.text, "-"):
			if place--; place == 0 && a.text != "-" {
				j.Judgement = j.Join(Path(a.text))
			}
		}
	}
}

// trusted judges what a call that changes something is given, where that says who is trusted or is run at a login.
func (j *judge) trusted(name string, args []word) {
	for _, a := range args {
		for _, p := range table().Paths {
			_, value, _ := strings.Cut(a.text, "=")
			if p.Logins && (p.pattern.MatchString(a.text) || value != "" && p.pattern.MatchString(value)) {
				j.add(Risky, reason(name, p.Why))
			}
		}
	}
}

// wrapped judges the command that another one runs.
func (j *judge) wrapped(of *wrapping, args []word) {
	words := of.Words
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case !a.known:
			j.add(Risky, "the name of a command is not known before it runs")
			return
		case slices.Contains(of.Takes, a.text):
			i++
		case strings.HasPrefix(a.text, "-"):
		case strings.Contains(a.text, "=") && words == 0 && !strings.Contains(a.text, "/"):
		case words > 0:
			words--
		default:
			inner := args[i:]
			if of.More {
				inner = append(slices.Clone(inner), word{})
			}
			j.words(inner)
			return
		}
	}
}
