package archtest

import (
	"go/ast"
	"go/token"
	"slices"
)

// checkBanned finds what is never written: sleeps and skips in tests, and errors recognised by their text. In fake time
// a sleep costs nothing and says what is meant, and a test may well look at what a person is told.
func checkBanned(f *file) []Violation {
	var found []Violation
	var fake ast.Node // the function under way that knows of fake time
	ast.Inspect(f.tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if usesFakeTime(n) {
				fake = n
			}
		case *ast.CallExpr:
			if isCall(n, "time", "Sleep") && fake != nil && n.Pos() < fake.End() {
				return true
			}
			found = append(found, f.checkCall(n)...)
		case *ast.BinaryExpr:
			if !f.test && (n.Op == token.EQL || n.Op == token.NEQ) && (isErrorText(n.X) || isErrorText(n.Y)) {
				found = append(found, f.matchesText(n.Pos()))
			}
		case *ast.SwitchStmt:
			if !f.test && n.Tag != nil && isErrorText(n.Tag) {
				found = append(found, f.matchesText(n.Pos()))
			}
		}
		return true
	})
	return found
}

func (f *file) matchesText(at token.Pos) Violation {
	return f.violation(at, "error text", "an error is recognised by its text: use errors.Is, errors.As or fault.Is")
}

func (f *file) checkCall(call *ast.CallExpr) []Violation {
	target, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	name := target.Sel.Name
	of, _ := target.X.(*ast.Ident)
	switch {
	case !f.test && name == "Ref" && len(call.Args) == 0 && slices.Contains(judging, f.folder()) && !isHandle(target.X):
		return []Violation{f.violation(call.Pos(), "row", "a change goes to the sandbox that was judged: h.Ref(), of a handle")}
	case f.test && isCall(call, "time", "Sleep"):
		return []Violation{f.violation(call.Pos(), "sleep", "a test waits for what happens, or uses testing/synctest")}
	case f.test && of != nil && slices.Contains(testers, of.Name) && slices.Contains(skips, name):
		return []Violation{f.violation(call.Pos(), "skip", "a test that does not run proves nothing")}
	case !f.test && of != nil && slices.Contains(textPackages, of.Name) && slices.Contains(matchers, name) && slices.ContainsFunc(call.Args, isErrorText):
		return []Violation{f.matchesText(call.Pos())}
	}
	return nil
}

// usesFakeTime reports whether a function speaks of testing/synctest.
func usesFakeTime(n *ast.FuncDecl) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		found = found || ok && (isCall(call, "synctest", "Test") || isCall(call, "synctest", "Wait"))
		return !found
	})
	return found
}

// isCall reports whether a call is of a package's function.
func isCall(call *ast.CallExpr, pkg, name string) bool {
	target, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || target.Sel.Name != name {
		return false
	}
	of, ok := target.X.(*ast.Ident)
	return ok && of.Name == pkg
}

// isHandle reports whether an expression is named as handles of package access are.
func isHandle(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "h"
	case *ast.SelectorExpr:
		return e.Sel.Name == "handle"
	}
	return false
}

// judging are the packages that ask package access who may do what, and tell the Manager by the handle's Ref.
var judging = []string{"web", "internal/proxy", "internal/sshd", "internal/services", "internal/ide", "internal/terminal"}

var (
	testers      = []string{"t", "b", "f", "tb"}
	skips        = []string{"Skip", "Skipf", "SkipNow"}
	textPackages = []string{"strings", "bytes", "regexp"}
	matchers     = []string{"Contains", "ContainsAny", "HasPrefix", "HasSuffix", "EqualFold", "Index", "Cut", "CutPrefix", "CutSuffix", "MatchString"}
)

// isErrorText reports whether an expression is a call of Error without arguments, which is an error's text.
func isErrorText(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok || len(call.Args) > 0 {
		return false
	}
	target, ok := call.Fun.(*ast.SelectorExpr)
	return ok && target.Sel.Name == "Error"
}
