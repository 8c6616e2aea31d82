package sqlite

import (
	"encoding/json"
	"fmt"

	"sandboxd/internal/sandbox"
)

// overridesText gives the column of o, "" when there is nothing to keep.
func overridesText(o sandbox.Overrides) (string, error) {
	if o.Empty() {
		return "", nil
	}
	text, err := json.Marshal(o)
	if err != nil {
		return "", fmt.Errorf("write own services: %w", err)
	}
	return string(text), nil
}

// overridesOf reads the column of a sandbox.
func overridesOf(name string, text []byte) (o sandbox.Overrides, err error) {
	if len(text) == 0 {
		return o, nil
	}
	if err := json.Unmarshal(text, &o); err != nil {
		return o, fmt.Errorf("read own services of %s: %w", name, err)
	}
	return o, nil
}

// revertText gives the column of r, "" for none.
func revertText(r sandbox.Revert) (string, error) {
	if r.Empty() {
		return "", nil
	}
	text, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("write what is restored: %w", err)
	}
	return string(text), nil
}

// revertOf reads the column of a sandbox.
func revertOf(name string, text []byte) (r sandbox.Revert, err error) {
	if len(text) == 0 {
		return r, nil
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("read what is restored to %s: %w", name, errBadJSON)
	}
	return r, nil
}
