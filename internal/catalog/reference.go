package catalog

import (
	"strings"

	"github.com/distribution/reference"

	"sandboxd/internal/fault"
)

// maxReference bounds an image reference, in bytes.
const maxReference = 255

// repositoryPrefix begins the repositories of images that are built from templates.
const repositoryPrefix = "sandboxd/"

// CheckImage says whether ref can name an image: "debian:trixie-slim", "registry.example.com/team/tool@sha256:…". The
// error is Invalid and about the field "image". It does not ask any engine.
func CheckImage(ref string) error {
	const field = "image"
	switch {
	case ref == "":
		return fault.Field(field, "An image is needed, such as debian:trixie-slim.")
	case len(ref) > maxReference:
		return fault.Field(field, "The image reference is longer than %d characters.", maxReference)
	}
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return fault.Field(field, "%q is not an image reference. Write it as debian:trixie-slim or registry.example.com/name:tag.", shorten(ref, 80))
	}
	switch name := reference.FamiliarName(named); {
	case strings.HasPrefix(name, repositoryPrefix):
		return fault.Field(field, "Images of templates are used through their template, not by reference.")
	case name == "sha256": // which an engine takes for the id of any image that it has
		return fault.Field(field, "Name an image by its reference, such as debian:trixie-slim, not by its id.")
	}
	return nil
}

// normalImage gives ref with the tag that an engine would take for it.
func normalImage(ref string) string {
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return ref
	}
	return reference.FamiliarString(reference.TagNameOnly(named))
}
