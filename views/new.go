package views

import "strings"

// address is where the sandbox will be.
func (n New) address() string {
	return strings.ReplaceAll(n.Address, "{name}", n.Name.Value)
}
