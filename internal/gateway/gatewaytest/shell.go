package gatewaytest

import "slices"

// shells are the names of the tools by which agents run a shell command.
var shells = []string{"bash", "Bash", "shell", "exec_command", "shell_command", "local_shell", "run_shell_command", "run_command", "execute", "run"}

// tool is one that a client offers to the model.
type tool struct {
	name   string
	schema schema
}

// schema is what is needed of a JSON schema to fill it in.
type schema struct {
	Type       any               `json:"type"` // a string or strings
	Properties map[string]schema `json:"properties"`
	Required   []string          `json:"required"`
	Enum       []any             `json:"enum"`
}

// is reports whether values of a type fit.
func (s schema) is(kind string) bool {
	switch t := s.Type.(type) {
	case string:
		return t == kind || t == upper[kind]
	case []any:
		return slices.Contains(t, any(kind))
	}
	return false
}

// upper has the names of types as Gemini's clients write them.
var upper = map[string]string{"array": "ARRAY", "boolean": "BOOLEAN", "integer": "INTEGER", "number": "NUMBER", "object": "OBJECT", "string": "STRING"}

// shellCall has the first tool that runs shell commands run one. There is such a tool.
func shellCall(tools []tool, command string) Call {
	for _, name := range shells {
		if i := slices.IndexFunc(tools, func(t tool) bool { return t.name == name }); i >= 0 {
			return Call{Name: name, Args: tools[i].schema.shellArguments(command)}
		}
	}
	return Call{Name: "no tool runs a shell command"}
}

// shellArguments fills in a schema so that a command is run.
func (s schema) shellArguments(command string) map[string]any {
	args := map[string]any{}
	for _, name := range s.Required {
		args[name] = s.Properties[name].filled()
	}
	if _, ok := s.Properties["description"]; ok {
		args["description"] = "Run a command"
	}
	name := "command"
	if _, ok := s.Properties["cmd"]; ok {
		name = "cmd"
	}
	args[name] = command
	if s.Properties[name].is("array") {
		args[name] = []string{"bash", "-lc", command}
	}
	return args
}

// filled is some value that fits.
func (s schema) filled() any {
	switch {
	case len(s.Enum) > 0:
		return s.Enum[0]
	case s.is("boolean"):
		return false
	case s.is("integer"), s.is("number"):
		return 1
	case s.is("array"):
		return []any{}
	case s.is("object"):
		return map[string]any{}
	}
	return "test"
}
