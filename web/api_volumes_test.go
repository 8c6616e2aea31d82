package web

import (
	"net/http"
	"strings"
	"testing"
)

// volumeNames are those that a user's list has.
func volumeNames(t *testing.T, w *world, user string) (names string) {
	t.Helper()
	var list struct{ Volumes []struct{ Name string } }
	decode(t, w.do(user, "GET", "/api/v1/volumes", ""), &list)
	for _, v := range list.Volumes {
		names += v.Name + " "
	}
	return names
}
