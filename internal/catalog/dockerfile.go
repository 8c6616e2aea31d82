package catalog

import (
	"bufio"
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// maxDockerfile bounds a Dockerfile, in bytes.
const maxDockerfile = 256 << 10

// baseArg is the build argument that carries the base template's image.
const baseArg = "BASE_IMAGE"

// instruction is one instruction of a Dockerfile: one step of a build.
type instruction struct {
	Line int    // where it begins, from 1
	Word string // in capitals, unless there is no such instruction
	Rest string // continuation lines joined
}

// dockerfile is what we need to know of a Dockerfile; the engine reads it again for real.
type dockerfile struct {
	Steps    []instruction
	External []string // the images that it builds on or copies from, other than its own stages and the base template
	OnBase   bool     // it has a FROM ${BASE_IMAGE}
}

var instructionWords = []string{"ADD", "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK",
	"LABEL", "MAINTAINER", "ONBUILD", "RUN", "SHELL", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR"}

// parseDockerfile reads the text of file and reports what no builder could read.
func parseDockerfile(file string, text []byte) (*dockerfile, []Problem) {
	p := problems{file: file}
	if len(text) > maxDockerfile {
		p.add(0, "The Dockerfile is larger than %d KiB.", maxDockerfile>>10)
		return nil, p.sorted()
	}
	d := &dockerfile{Steps: splitInstructions(text)}
	checkInstructions(&p, d.Steps)
	d.resolve(&p)
	return d, p.sorted()
}

// splitInstructions joins continued lines and leaves out comments and empty lines, also between continued ones.
func splitInstructions(text []byte) []instruction {
	var (
		steps   []instruction
		current strings.Builder
		start   int
		escape  = escapeOf(text)
	)
	s := bufio.NewScanner(bytes.NewReader(text))
	s.Buffer(nil, maxDockerfile+1)
	flush := func() {
		if whole := strings.TrimSpace(current.String()); whole != "" {
			word, rest, _ := strings.Cut(strings.ReplaceAll(whole, "\t", " "), " ")
			if upper := strings.ToUpper(word); slices.Contains(instructionWords, upper) {
				word = upper
			}
			steps = append(steps, instruction{Line: start, Word: word, Rest: strings.TrimSpace(rest)})
		}
		current.Reset()
	}
	for n := 1; s.Scan(); n++ {
		line := strings.TrimRight(s.Text(), " \t\r")
		if trimmed := strings.TrimSpace(line); trimmed == "" || trimmed[0] == '#' {
			continue
		}
		if current.Len() == 0 {
			start = n
		}
		part, continued := strings.CutSuffix(line, escape)
		current.WriteString(part)
		if !continued {
			flush()
		}
	}
	flush()
	return steps
}

// escapeOf gives the character that continues a line: a backslash unless a directive on top says otherwise.
func escapeOf(text []byte) string {
	for line := range strings.Lines(string(text)) {
		rest, comment := strings.CutPrefix(strings.TrimSpace(line), "#")
		key, value, directive := strings.Cut(rest, "=")
		if !comment || !directive {
			break
		}
		if strings.EqualFold(strings.TrimSpace(key), "escape") && strings.TrimSpace(value) == "`" {
			return "`"
		}
	}
	return `\`
}

func checkInstructions(p *problems, steps []instruction) {
	from := slices.IndexFunc(steps, func(i instruction) bool { return i.Word == "FROM" })
	for n, i := range steps {
		switch {
		case !slices.Contains(instructionWords, i.Word):
			p.add(i.Line, "There is no Dockerfile instruction %q.%s", shorten(i.Word, maxName), hereDocument(steps[:n]))
			return
		case i.Rest == "":
			p.add(i.Line, "%s has no arguments.", i.Word)
		case from < 0:
		case n < from && i.Word != "ARG":
			p.add(i.Line, "%s stands before the first FROM. Only ARG may.", i.Word)
		}
	}
	if from < 0 {
		p.add(0, "The Dockerfile has no FROM.")
	}
}

// hereDocument is a hint for who wrote a here-document, which the engine's builder does not read.
func hereDocument(before []instruction) string {
	if len(before) > 0 && strings.Contains(before[len(before)-1].Rest, "<<") {
		return " Here-documents (<<) are not understood; use a file and COPY."
	}
	return ""
}

// resolve finds the images that the build needs beforehand.
func (d *dockerfile) resolve(p *problems) {
	args := map[string]string{baseArg: "${" + baseArg + "}"}
	var stages []string
	inStage := false
	for _, i := range d.Steps {
		switch i.Word {
		case "ARG":
			if name, value, set := strings.Cut(i.Rest, "="); set && !inStage && name != baseArg {
				args[name] = strings.Trim(value, `"'`)
			}
		case "FROM":
			inStage = true
			ref, stage := fromParts(i.Rest)
			d.need(p, i.Line, expand(ref, args), stages)
			if stage != "" {
				stages = append(stages, strings.ToLower(stage))
			}
		case "COPY":
			if ref := copySource(i.Rest); ref != "" && !allDigits(ref) {
				d.need(p, i.Line, ref, stages)
			}
		}
	}
}

// need notes that the build needs ref, unless it is scratch or one of its own stages.
func (d *dockerfile) need(p *problems, line int, ref string, stages []string) {
	switch {
	case ref == "${"+baseArg+"}":
		d.OnBase = true
	case ref == "scratch" || slices.Contains(stages, strings.ToLower(ref)) || slices.Contains(d.External, ref):
	case strings.Contains(ref, "$"):
		p.add(line, "The image %q has a variable without a default. Give it one with ARG before the first FROM.", shorten(ref, maxName))
	case CheckImage(ref) != nil:
		p.add(line, "%q is not an image reference, such as debian:trixie-slim.", shorten(ref, maxName))
	default:
		d.External = append(d.External, ref)
	}
}

// fromParts splits what follows FROM: flags, the image, and the stage's name if it has one.
func fromParts(rest string) (ref, stage string) {
	words := strings.Fields(rest)
	for len(words) > 0 && strings.HasPrefix(words[0], "--") {
		words = words[1:]
	}
	if len(words) == 0 {
		return "", ""
	}
	if len(words) == 3 && strings.EqualFold(words[1], "AS") {
		stage = words[2]
	}
	return words[0], stage
}

// copySource gives what COPY --from= names, or "".
func copySource(rest string) string {
	for _, word := range strings.Fields(rest) {
		if ref, found := strings.CutPrefix(word, "--from="); found {
			return ref
		}
		if !strings.HasPrefix(word, "--") {
			break
		}
	}
	return ""
}

func allDigits(s string) bool { return strings.Trim(s, "0123456789") == "" }

var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}|\$([A-Za-z_][A-Za-z0-9_]*)`)

// expand puts arguments into a reference. Those without a value stay as they are.
func expand(ref string, args map[string]string) string {
	return variable.ReplaceAllStringFunc(ref, func(found string) string {
		m := variable.FindStringSubmatch(found)
		if value, ok := args[m[1]+m[3]]; ok {
			return value
		}
		if m[2] != "" {
			return m[2]
		}
		return found
	})
}
