//go:build engine

package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"testing"

	"sandboxd/internal/sandbox"
)

// makeDuplicate makes a second network of the instance's name, as a killed sandboxd's last request does: the client library
// asks the engine to refuse, so this goes past it.
func makeDuplicate(t *testing.T, e *Engine) {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"Name": e.network.name, "Driver": "bridge", "CheckDuplicate": false,
		"Options": map[string]string{optionApart: "false"}, "Labels": map[string]string{labelInstance: e.c.Instance},
	})
	if err != nil {
		t.Fatal(err)
	}
	cli := e.client.Load()
	web := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return cli.Dialer()(ctx) }}}
	resp, err := web.Post("http://engine/v1.41/networks/create", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		t.Fatalf("the engine answers %s to a second network of one name", resp.Status)
	}
}

func TestNetwork_DuplicatesOfItAreRemovedAndNothingIsLost(t *testing.T) {
	e := openTest(t)
	rests, runs := testBox(t, "patient"), testBox(t, "patient")
	for _, b := range []sandbox.ContainerSpec{rests, runs} {
		if err := e.Create(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Start(t.Context(), runs.ID); err != nil {
		t.Fatal(err)
	}
	makeDuplicate(t, e)
	if err := e.Start(t.Context(), rests.ID); err != nil {
		t.Fatalf("start with a duplicate about: %v", err)
	}
	found, err := e.client.Load().ContainerInspect(t.Context(), e.resource(runs.ID))
	if err != nil || !found.State.Running {
		t.Errorf("the running one: %v", err)
	}
	makeDuplicate(t, e)
	for _, id := range []string{rests.ID, runs.ID} {
		if err := e.Remove(t.Context(), id); err != nil {
			t.Errorf("remove with a duplicate about: %v", err)
		}
	}
	if list, err := e.network.namesakes(t.Context(), e.client.Load()); err != nil || len(list) != 0 {
		t.Errorf("%d networks are left, %v", len(list), err)
	}
}
