package views

import "strings"

// FieldOf gives the field of the form that a fault's field is about, or nil.
func (f *ServiceFields) FieldOf(name string) *Field {
	switch {
	case name == "name":
		return &f.Name
	case strings.HasPrefix(name, "command"):
		return &f.Command
	case name == "port":
		return &f.Port
	case name == "cwd":
		return &f.Cwd
	case strings.HasPrefix(name, "env"):
		return &f.Env
	case name == "health.path", name == "health":
		return &f.Path
	case name == "health.interval":
		return &f.Interval
	}
	return nil
}
