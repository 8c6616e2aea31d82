package archtest

import (
	"go/ast"
	"strings"
)

// checkSizes measures a file, its functions, structs and parameters.
func checkSizes(f *file) []Violation {
	var found []Violation
	if f.lines > maxLines {
		found = append(found, f.violation(f.tree.Package, "file size", "%d lines, %d at most", f.lines, maxLines))
	}
	ast.Inspect(f.tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			found = append(found, f.checkFunction(n)...)
		case *ast.TypeSpec:
			found = append(found, f.checkStruct(n)...)
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

// checkStruct lets configuration be as large as it has to be.
func (f *file) checkStruct(n *ast.TypeSpec) []Violation {
	s, ok := n.Type.(*ast.StructType)
	name := strings.ToLower(n.Name.Name)
	if !ok || strings.HasSuffix(name, "config") || strings.HasSuffix(name, "options") {
		return nil
	}
	if count := countNames(s.Fields); count > maxFields {
		return []Violation{f.violation(n.Pos(), "struct size", "%s has %d fields, %d at most", n.Name.Name, count, maxFields)}
	}
	return nil
}

// countNames counts fields or parameters; an embedded or nameless one counts once.
func countNames(list *ast.FieldList) int {
	count := 0
	for _, field := range list.List {
		count += max(1, len(field.Names))
	}
	return count
}
