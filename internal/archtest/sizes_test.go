package archtest

import (
	"go/ast"
	"go/token"
)

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

// checkMethods counts the methods of each type of a package. One with more does too much, however short they are.
func checkMethods(pkg []*file) []Violation {
	type named struct {
		at    *file
		pos   token.Pos
		count int
	}
	types := map[string]*named{}
	for _, f := range pkg {
		for _, d := range f.tree.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil {
				continue
			}
			name := receiver(fn.Recv.List[0].Type)
			if types[name] == nil {
				types[name] = &named{at: f, pos: fn.Pos()}
			}
			types[name].count++
		}
	}
	var found []Violation
	for name, t := range types {
		if t.count > maxMethods {
			found = append(found, t.at.violation(t.pos, "methods", "%s has %d, %d at most: give what belongs together a type of its own", name, t.count, maxMethods))
		}
	}
	return found
}

// receiver is the name of a method's type.
func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
}

// countNames counts parameters; a nameless one counts once.
func countNames(list *ast.FieldList) int {
	count := 0
	for _, field := range list.List {
		count += max(1, len(field.Names))
	}
	return count
}
