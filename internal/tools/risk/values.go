package risk

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A shell runs commands in texts that it computes with: x='a[$(id)]'; echo $((x)) runs id. So what is computed with must be a number that is
// known to be one.

// number is what a text must be to be computed with.
var number = regexp.MustCompile(`^[+-]?[0-9]+$`)

// evaluation judges what makes a text, or the name of a variable, something that is run.
func (j *judge) evaluation(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.ArithmExp:
		j.computes(n.X)
	case *syntax.ArithmCmd:
		j.computes(n.X)
	case *syntax.LetClause:
		for _, x := range n.Exprs {
			j.computes(x)
		}
	case *syntax.CStyleLoop:
		for _, x := range []syntax.ArithmExpr{n.Init, n.Cond, n.Post} {
			j.computes(x)
		}
	case *syntax.WordIter:
		j.setsVariable(n.Name.Value)
	case *syntax.BinaryTest:
		switch n.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			for _, x := range []syntax.TestExpr{n.X, n.Y} {
				if w, ok := x.(*syntax.Word); ok {
					j.computes(w)
				}
			}
		}
	case *syntax.UnaryTest:
		if name, known := testedName(n); !known || strings.Contains(name, "[") {
			j.add(Risky, computed)
		}
	case *syntax.ParamExp:
		j.expansion(n)
	}
}

// computed is why a computation is Risky.
const computed = "it computes with a text that may have commands in it"

// testedName gives the variable that [[ -v ]] asks for; "" when it asks for something else.
func testedName(n *syntax.UnaryTest) (string, bool) {
	if n.Op != syntax.TsVarSet && n.Op != syntax.TsRefVar {
		return "", true
	}
	w, _ := n.X.(*syntax.Word)
	return literal(w)
}

func (j *judge) expansion(n *syntax.ParamExp) {
	if n.Excl && n.Names == 0 {
		j.add(Risky, "which variable it reads is not known before it runs")
	}
	if n.Index != nil && !everything(n.Index) {
		j.computes(n.Index)
	}
	if n.Slice != nil {
		j.computes(n.Slice.Offset)
		j.computes(n.Slice.Length)
	}
	if n.Exp == nil {
		return
	}
	switch n.Exp.Op {
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		j.setsVariable(n.Param.Value)
	case syntax.OtherParamOps:
		if how, known := literal(n.Exp.Word); !known || how != "Q" {
			j.add(Risky, computed)
		}
	}
}

// everything says whether an index is that of all elements.
func everything(x syntax.ArithmExpr) bool {
	w, ok := x.(*syntax.Word)
	if !ok {
		return false
	}
	text, known := literal(w)
	return known && (text == "@" || text == "*")
}

// computes judges a computation: each name in it must be a variable that has numbers only.
func (j *judge) computes(x syntax.ArithmExpr) {
	if x == nil {
		return
	}
	syntax.Walk(x, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.ParamExp:
			if name := n.Param.Value; !n.Length && !strings.ContainsAny(name, "#?$!") && !slices.Contains(j.numbers, name) {
				j.add(Risky, computed)
			}
			return false // its parts come by themselves
		case *syntax.Word:
			text, known := literal(n)
			if known && !number.MatchString(text) && !slices.Contains(j.numbers, text) {
				j.add(Risky, computed)
			}
		case *syntax.CmdSubst, *syntax.SglQuoted, *syntax.ProcSubst:
			j.add(Risky, computed)
			return false
		}
		return true
	})
}

// numbersOf finds the variables of a script that never have anything but numbers.
func numbersOf(file *syntax.File) (names []string) {
	var others []string
	readsIn := false // a command sets variables by their names
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Name == nil {
				break
			}
			text, known := literal(n.Value)
			if n.Index == nil && n.Array == nil && !n.Naked && (known && number.MatchString(text) || n.Value != nil && onlyComputes(n.Value)) {
				names = append(names, n.Name.Value)
			} else {
				others = append(others, n.Name.Value)
			}
		case *syntax.WordIter:
			all := len(n.Items) > 0
			for _, item := range n.Items {
				text, known := literal(item)
				all = all && known && number.MatchString(text)
			}
			if all {
				names = append(names, n.Name.Value)
			} else {
				others = append(others, n.Name.Value)
			}
		case *syntax.CStyleLoop:
			if begin, ok := n.Init.(*syntax.BinaryArithm); ok && begin.Op == syntax.Assgn {
				if w, ok := begin.X.(*syntax.Word); ok {
					names = append(names, w.Lit())
				}
			}
		case *syntax.CallExpr:
			if len(n.Args) > 0 {
				name, known := literal(n.Args[0])
				readsIn = readsIn || !known || slices.Contains([]string{"read", "mapfile", "readarray", "getopts", "printf", "wait", "builtin", "command", "eval", "source", "."}, name)
			}
		case *syntax.DeclClause:
			readsIn = true
		}
		return true
	})
	if readsIn {
		return nil
	}
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(others, name) })
}

// onlyComputes says whether a word is nothing but the result of a computation, or a count.
func onlyComputes(w *syntax.Word) bool {
	if len(w.Parts) != 1 {
		return false
	}
	switch p := w.Parts[0].(type) {
	case *syntax.ArithmExp:
		return true
	case *syntax.ParamExp:
		return p.Length
	}
	return false
}

// declares judges the arguments of declare, export and their like.
func (j *judge) declares(a *syntax.Assign) {
	j.assign(a)
	if a.Name != nil || a.Value == nil {
		return
	}
	text, known := literal(a.Value)
	switch name, _, _ := strings.Cut(text, "="); {
	case !known || strings.Contains(text, "["):
		j.add(Risky, computed)
	case strings.HasPrefix(text, "-") && strings.ContainsAny(text, "in"):
		j.add(Risky, computed)
	default:
		j.setsVariable(name)
	}
}
