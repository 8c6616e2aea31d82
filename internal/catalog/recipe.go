package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
)

// formatVersion is part of every tag. Raise it when the same folder must give another image than before.
const formatVersion = "1"

// hashDigits is how much of a content hash a tag carries: 48 bits, for a handful of images on one engine.
const hashDigits = 12

// pullSteps is how many steps of a build a pull counts as in a progress.
const pullSteps = 1

// LabelRoot is on the images that are built on one of a snapshot; its value is that one's id. Those that are made of them have it, too.
const LabelRoot = "sandboxd.root"

// recipe is how one image is made: built from a template's folder, or pulled.
type recipe struct {
	name     string  // of the template, or "" for a plain image
	ref      string  // the reference that the image has when it is made
	parent   *recipe // what it is built on, or nil
	rootID   string  // of what it is built on in place of a parent, or ""
	root     string  // the image of that
	docker   *dockerfile
	folder   string // build context; "" for a pull
	named    string // the folder, as people know it
	external []string
}

// recipeOf says how to make the image of t as its folder stands now.
func (i *Images) recipeOf(t Template) (*recipe, error) {
	if t.Name == "" {
		if err := CheckImage(t.Image); err != nil {
			return nil, err
		}
		return &recipe{ref: normalImage(t.Image)}, nil
	}
	found, err := i.catalog.find(t.Name)
	if err != nil {
		return nil, err
	}
	if image := found.entry.Template.Image; image != "" {
		return &recipe{name: t.Name, ref: normalImage(image)}, nil
	}
	return i.templateRecipe(found), nil
}

func (i *Images) templateRecipe(found *resolved) *recipe {
	r := &recipe{
		name: found.entry.Name, docker: found.read.docker, folder: found.read.real, named: found.read.dir, external: found.read.docker.External,
		rootID: found.read.template.Root,
	}
	if r.rootID != "" {
		r.root = i.root(r.rootID)
	}
	below := r.rootID
	if found.parent != nil {
		r.parent = i.templateRecipe(found.parent)
		below = r.parent.ref
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%s\n%s\n%s\n", formatVersion, below, i.extraPrint, found.read.content)
	r.ref = repositoryPrefix + r.name + ":" + hex.EncodeToString(sum.Sum(nil))[:hashDigits]
	return r
}

// steps is how many steps making the image counts as. An engine adds one for the labels.
func (r *recipe) steps() int {
	if r.docker == nil {
		return pullSteps
	}
	return len(r.docker.Steps) + 1
}

// build is what the engine is asked for.
func (r *recipe) build(extra map[string][]byte) Build {
	b := Build{
		Tag: r.ref, Folder: r.folder, Extra: extra,
		Labels: map[string]string{"sandboxd.template": r.name},
	}
	if r.parent != nil {
		b.Args = map[string]string{baseArg: r.parent.ref}
	}
	if r.rootID != "" {
		b.Args = map[string]string{baseArg: r.root}
		b.Labels[LabelRoot] = r.rootID
	}
	return b
}

// stepLine tells where in the Dockerfile a step (from 1) is written; "" when there is no such step.
func (r *recipe) stepLine(n int) string {
	if r.docker == nil || n < 1 || n > len(r.docker.Steps) {
		return ""
	}
	return fmt.Sprintf("%s:%d", filepath.Join(r.named, dockerFile), r.docker.Steps[n-1].Line)
}
