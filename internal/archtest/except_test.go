package archtest

import "strings"

// except takes out what the exceptions allow, and adds the exceptions that nothing needs.
func except(found []Violation, exceptions []exception) []Violation {
	used := make([]bool, len(exceptions))
	var left []Violation
	for _, v := range found {
		allowed := false
		for i, e := range exceptions {
			if e.file == v.File && e.rule == v.Rule && strings.Contains(v.Text, e.about) && e.reason != "" {
				used[i], allowed = true, true
			}
		}
		if !allowed {
			left = append(left, v)
		}
	}
	for i, e := range exceptions {
		if !used[i] {
			left = append(left, Violation{e.file, 1, "exception", "nothing needs the exception from \"" + e.rule + "\" any more"})
		}
	}
	return left
}
