package docker

import (
	"context"
	"slices"

	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
)

// ImageTags gives the references of all images of a repository. See catalog.Engine.
func (e imageStore) ImageTags(ctx context.Context, repository string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	images, err := e.client.Load().ImageList(ctx, image.ListOptions{
		Filters: filters.NewArgs(filters.Arg("reference", repository+":*")),
	})
	if err != nil {
		return nil, classify(err, "list images")
	}
	var refs []string
	for _, i := range images {
		refs = append(refs, i.RepoTags...)
	}
	slices.Sort(refs)
	return refs, nil
}
