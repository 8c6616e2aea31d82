package acp

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// fields are the parts of a call's input. Their names are taken exactly, as agents do: encoding/json would take "Command" for "command" too.
func (c *ToolCall) fields() (in map[string]json.RawMessage) {
	if json.Unmarshal(c.Input, &in) != nil {
		return nil
	}
	return in
}

// texts gives the parts of an input with some names that are texts, each once.
func texts(in map[string]json.RawMessage, names ...string) (all []string) {
	for _, name := range names {
		var s string
		if json.Unmarshal(in[name], &s) == nil && s != "" && !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// Command is the very command that a call runs, as far as its input says; "" for none. The names are those that agents use. An input with two
// commands gives both.
func (c *ToolCall) Command() string {
	in := c.fields()
	var all []string
	for _, name := range []string{"command", "cmd"} {
		var line string
		var words []string
		if json.Unmarshal(in[name], &line) != nil && json.Unmarshal(in[name], &words) == nil {
			line = lineOf(words)
		}
		if line != "" && !slices.Contains(all, line) {
			all = append(all, line)
		}
	}
	return strings.Join(all, "\n")
}

// Folders are where a call runs its command, as far as its input says. There is one but for an input that has more of the names that agents
// use.
func (c *ToolCall) Folders() []string {
	return texts(c.fields(), "cwd", "workdir", "directory", "dir_path")
}

// HasMore reports whether the input has more than a command that says what runs, such as arguments or an environment.
func (c *ToolCall) HasMore() bool {
	in := c.fields()
	return slices.ContainsFunc([]string{"args", "arguments", "argv", "env", "environment", "script", "code", "stdin", "input", "shell", "interpreter"}, func(name string) bool {
		value := in[name]
		return len(value) > 0 && !slices.ContainsFunc([]string{"null", `""`, "[]", "{}"}, func(empty string) bool { return bytes.Equal(value, []byte(empty)) })
	})
}

// shells are programs whose script after "-c" is the command, for a person. Another one with such a name can be anything.
var shells = []string{"sh", "bash", "zsh", "dash", "/bin/sh", "/bin/bash", "/bin/zsh", "/usr/bin/sh", "/usr/bin/bash", "/usr/bin/zsh"}

// lineOf writes the words of a command as a shell reads them.
func lineOf(words []string) string {
	if len(words) == 3 && (words[1] == "-c" || words[1] == "-lc") && slices.Contains(shells, words[0]) {
		return words[2]
	}
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:,@%+="
	var line []string
	for i, w := range words {
		if strings.Trim(w, plain) != "" || w == "" || i == 0 && strings.Contains(w, "=") {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		line = append(line, w)
	}
	return strings.Join(line, " ")
}

// Files are the files that a call works on: those of its changes, its places and its input.
func (c *ToolCall) Files() []string {
	all := slices.Clone(c.Paths)
	for _, f := range c.Changes {
		all = append(all, f.Path)
	}
	return append(all, texts(c.fields(), "path", "file_path", "filePath", "filepath", "filename", "fileName", "notebook_path", "absolute_path", "source", "destination")...)
}
