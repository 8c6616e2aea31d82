package docker

import (
	"strings"

	"github.com/docker/docker/api/types/filters"

	"sandboxd/internal/sandbox"
)

// The labels on everything that this package makes. labelInstance is the join key with the outside.
const (
	labelInstance = "sandboxd.instance"
	labelID       = "sandboxd.id"
	labelName     = "sandboxd.name"
	labelTemplate = "sandboxd.template"
	labelImage    = "sandboxd.image"
	labelMade     = "sandboxd.made" // id of the image that labelImage named, on a container that Remount has made from another one
)

// resource is the name of a sandbox's container, and of its volume.
func (e *connection) resource(id string) string { return "sandboxd-" + e.c.Instance + "-" + id }

// idOf gives the sandbox that a resource belongs to, false for one that only looks like ours.
func (e *connection) idOf(name string, labels map[string]string) (string, bool) {
	id := labels[labelID]
	return id, id != "" && labels[labelInstance] == e.c.Instance && strings.TrimPrefix(name, "/") == e.resource(id)
}

// labels are b's own, for container and volume alike.
func (e *connection) labels(b sandbox.ContainerSpec) map[string]string {
	return map[string]string{
		labelInstance: e.c.Instance, labelID: b.ID, labelName: b.Name, labelTemplate: b.Template, labelImage: b.Image,
	}
}

// ours picks what carries this instance's label.
func (e *connection) ours() filters.Args {
	return filters.NewArgs(filters.Arg("label", labelInstance+"="+e.c.Instance))
}

// instance is what labels tell of a sandbox.
func instance(labels map[string]string) sandbox.Instance {
	return sandbox.Instance{
		ID: labels[labelID], Name: labels[labelName], Template: labels[labelTemplate], Image: labels[labelImage],
	}
}
