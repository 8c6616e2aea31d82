package archtest

import "go/ast"

// checkSizes measures a file, its functions and parameters.
func checkSizes(f *file) []Violation {
	var found []Violation
	if f.lines > maxLines {
		found = append(found, f.violation(f.tree.Package, "file size", "%d lines, %d at most", f.lines, maxLines))
	}
	ast.Inspect(f.tree, func(n ast.Node) bool {
		if n, ok := n.(*ast.FuncDecl); ok {
			found = append(found, f.checkFunction(n)...)
		}
		return true
	})
	return found
}

func (f *file) checkFunction(n *ast.FuncDecl) []Violation {
	var found []Violation
	if lines := f.set.Position(n.End()).Line - f.set.Position(n.Pos()).Line + 1; lines > maxFunction {
		found = append(found, f.violation(n.Pos(), "function size", "%s has %d lines, %d at most", n.Name.Name, lines, maxFunction))
	}
	if count := countNames(n.Type.Params); count > maxParameters {
		found = append(found, f.violation(n.Pos(), "parameters", "%s has %d, %d at most: make them a struct named for what it is",
			n.Name.Name, count, maxParameters))
	}
	return found
}

// countNames counts parameters; a nameless one counts once.
func countNames(list *ast.FieldList) int {
	count := 0
	for _, field := range list.List {
		count += max(1, len(field.Names))
	}
	return count
}
