package logs

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// maxFields bounds what is made of one line.
const maxFields = 100

// messageNames are what programs call the field with the words of a line, the usual ones first.
var messageNames = []string{"message", "msg", "event", "text", "error", "err"}

// Field is a name and a value of a line that is JSON. What is no string is as JSON writes it.
type Field struct{ Name, Value string }

// Fields takes a line that is a JSON object apart: its message, which is "" when it has none, and the other fields in their order.
// ok is false for any other line.
func Fields(line string) (message string, fields []Field, ok bool) {
	if fields, ok = members(line); !ok {
		return "", nil, false
	}
	for _, name := range messageNames {
		at := slices.IndexFunc(fields, func(f Field) bool { return strings.EqualFold(f.Name, name) && f.Value != "" })
		if at >= 0 {
			message = fields[at].Value
			return message, slices.Delete(fields, at, at+1), true
		}
	}
	return "", fields, true
}

// members gives the names and values of a line that is a JSON object, in their order, up to maxFields.
func members(line string) (fields []Field, ok bool) {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "{") || !strings.HasSuffix(line, "}") || !json.Valid([]byte(line)) {
		return nil, false
	}
	dec := json.NewDecoder(strings.NewReader(line))
	if _, err := dec.Token(); err != nil {
		return nil, false
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, false
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, false
		}
		if text, isText := name.(string); isText && len(fields) < maxFields {
			fields = append(fields, Field{text, plainValue(value)})
		}
	}
	return fields, true
}

// plainValue gives a value as people read it.
func plainValue(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil && !bytes.Equal(value, []byte("null")) {
		return text
	}
	var b bytes.Buffer
	if json.Compact(&b, value) != nil {
		return string(value)
	}
	return b.String()
}
