package archtest

import (
	"go/ast"
	"slices"
	"strconv"
	"strings"
)

// matches reports whether a folder is what pattern names.
func matches(pattern, folder string) bool {
	if base, ok := strings.CutSuffix(pattern, "/..."); ok {
		return folder == base || strings.HasPrefix(folder, base+"/")
	}
	return folder == pattern
}

// layerOf finds the layer of a folder, or nil.
func layerOf(folder string) *layer {
	for i := range layers {
		for _, pattern := range layers[i].packages {
			if matches(pattern, folder) {
				return &layers[i]
			}
		}
	}
	return nil
}

// checkImports holds imports against the tables. Tests may import across layers: they put things together.
func checkImports(f *file) []Violation {
	var found []Violation
	for _, spec := range f.tree.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser has refused it
		}
		why := ""
		if own, ok := strings.CutPrefix(name, Module+"/"); ok {
			why = f.ownImport(own)
		} else {
			why = f.foreignImport(name)
		}
		if why != "" {
			found = append(found, f.violation(spec.Pos(), "import", "%s: %s", name, why))
		}
	}
	return found
}

func (f *file) ownImport(folder string) string {
	from, to := layerOf(f.folder()), layerOf(folder)
	switch {
	case f.test || from == nil || to == nil: // checkPackages tells of packages without a layer
		return ""
	case to.name == "text": // for everybody, as the standard library is
		return ""
	case to.name == "test":
		return "only tests may import it"
	case !slices.Contains(from.may, to.name):
		return "the layer " + strconv.Quote(from.name) + " may not import the layer " + strconv.Quote(to.name)
	}
	return ""
}

func (f *file) foreignImport(name string) string {
	owner, longest := "", 0
	for driver, who := range drivers {
		if within(driver, name) && !(isStandard(driver) && driver != name) && len(driver) > longest {
			owner, longest = who, len(driver)
		}
	}
	switch {
	case owner == "nobody":
		return "nobody may import it"
	case f.test || f.isTestSupport():
		return ""
	case owner == "tests":
		return "only tests may import it"
	case owner != "" && !slices.ContainsFunc(strings.Fields(owner), func(o string) bool { return matches(o, f.folder()) }):
		return "only " + owner + " may import it"
	case owner == "" && !isStandard(name) && !slices.ContainsFunc(shared, func(s string) bool { return within(s, name) }):
		return "it is in no table: give it one owner in drivers, or a reason in shared"
	}
	return ""
}

// within reports whether an import path is prefix or below it.
func within(prefix, name string) bool { return name == prefix || strings.HasPrefix(name, prefix+"/") }

// isStandard reports whether an import path is of the standard library.
func isStandard(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return !strings.Contains(first, ".")
}

func (f *file) isTestSupport() bool {
	l := layerOf(f.folder())
	return l != nil && l.name == "test"
}

// checkPackages looks at each package as a whole: that it has a layer, a good name, and a comment.
func checkPackages(files []*file) []Violation {
	byFolder := map[string][]*file{}
	for _, f := range files {
		if !f.test {
			byFolder[f.folder()] = append(byFolder[f.folder()], f)
		}
	}
	var found []Violation
	for folder, pkg := range byFolder {
		first := pkg[0]
		if layerOf(folder) == nil {
			found = append(found, first.violation(first.tree.Package, "layer", "the package %s is in no layer", folder))
		}
		if name := first.tree.Name.Name; slices.Contains(emptyNames, name) {
			found = append(found, first.violation(first.tree.Package, "package name", "%q says nothing", name))
		}
		found = append(found, checkPackageComment(pkg)...)
		found = append(found, checkMethods(pkg)...)
	}
	return found
}

// emptyNames hide what a package is about.
var emptyNames = []string{"util", "utils", "common", "helper", "helpers", "model", "models", "type", "types", "service", "misc", "shared"}

// checkPackageComment wants one comment with three parts: what it is, what it is not, and the invariant. A command's
// may be of any form.
func checkPackageComment(pkg []*file) []Violation {
	var comments []*ast.CommentGroup
	var at *file
	var found []Violation
	for _, f := range pkg {
		if f.tree.Doc != nil {
			comments, at = append(comments, f.tree.Doc), f
		}
	}
	first := pkg[0]
	switch {
	case len(comments) == 0:
		found = append(found, first.violation(first.tree.Package, "package comment", "package %s has none", first.tree.Name.Name))
	case len(comments) > 1:
		found = append(found, at.violation(comments[1].Pos(), "package comment", "package %s has more than one", first.tree.Name.Name))
	case first.tree.Name.Name != "main":
		text := comments[0].Text()
		if parts := strings.Count(strings.TrimSpace(text), "\n\n") + 1; parts < 3 || !strings.Contains(text, "\n\nInvariant: ") {
			found = append(found, at.violation(comments[0].Pos(), "package comment",
				"it needs three parts: what it is, what it is not, and \"Invariant: …\""))
		}
		if !strings.HasPrefix(text, "Package "+first.tree.Name.Name+" ") {
			found = append(found, at.violation(comments[0].Pos(), "package comment", "it begins with \"Package %s\"", first.tree.Name.Name))
		}
	}
	return found
}
