package archtest

import (
	"go/ast"
	"go/token"
)

// checkDocs wants a sentence for every exported name. A command exports nothing to anybody, and tests neither.
func checkDocs(f *file) []Violation {
	if f.test || f.tree.Name.Name == "main" {
		return nil
	}
	var found []Violation
	for _, decl := range f.tree.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
				found = append(found, f.undocumented(d.Name))
			}
		case *ast.GenDecl:
			found = append(found, f.checkSpecs(d)...)
		}
	}
	return found
}

func (f *file) undocumented(name *ast.Ident) Violation {
	return f.violation(name.Pos(), "docs", "%s is exported and says nothing", name.Name)
}

// checkSpecs looks at types, constants and variables. In a group, the group's comment counts for constants and
// variables, and so does a comment at the end of the line.
func (f *file) checkSpecs(d *ast.GenDecl) []Violation {
	var found []Violation
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			alone := !d.Lparen.IsValid()
			if s.Name.IsExported() && s.Doc == nil && !(alone && d.Doc != nil) {
				found = append(found, f.undocumented(s.Name))
			}
		case *ast.ValueSpec:
			if d.Doc != nil || s.Doc != nil || s.Comment != nil || d.Tok == token.IMPORT {
				continue
			}
			for _, name := range s.Names {
				if name.IsExported() {
					found = append(found, f.undocumented(name))
				}
			}
		}
	}
	return found
}

// exportedReceiver reports whether a function is no method, or one of an exported type.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return true
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return true
		}
	}
}
