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

// focus gives the name of the input to begin with: the first that is wrong, else the first of a new service.
func (f ServiceForm) focus() string {
	return firstFault(f.Was == "", namedField{"name", f.Name}, namedField{"port", f.Port}, namedField{"command", f.Command}, namedField{"cwd", f.Cwd},
		namedField{"env", f.Env}, namedField{"health_path", f.Path}, namedField{"health_interval", f.Interval})
}

// resets says whether there is anything to go back to the template's services from.
func (l ServiceList) resets() bool { return l.Overridden && (!l.Bare || len(l.Items) > 0) }

func (l ServiceList) resetQuestion() string {
	if l.Bare {
		return "Remove all services? Running ones are stopped."
	}
	return "Use the template's services again? Your own services are stopped and removed."
}
