//go:build e2e

package main

import (
	"net"
	"net/http"
	"strings"
	"testing"

	"sandboxd/internal/hostname"
)

// labelled is a container that Traefik may see, in which the echo service listens.
type labelled struct {
	container string
	address   string // of the service
}

// newLabelled starts one with labels and options of the engine's.
func newLabelled(t testing.TB, k *traefikProcess, name string, labels map[string]string, options ...string) labelled {
	t.Helper()
	unique, _, _ := strings.Cut(k.domain, ".")
	c := labelled{container: "sbx-e2e-" + unique + "-" + name}
	args := []string{"run", "-d", "--name", c.container, "--label", "sandboxd.instance=e2e-" + unique, "-v", echoProgram(t) + ":/echo:ro"}
	for key, value := range labels {
		args = append(args, "--label", key+"="+value)
	}
	engine(t, append(append(args, options...), "debian:trixie-slim", "/echo", ":7880")...)
	t.Cleanup(func() { engine(t, "rm", "-f", c.container) })
	c.address = net.JoinHostPort(engine(t, "inspect", "-f", "{{.NetworkSettings.IPAddress}}", c.container), "7880")
	return c
}

// ownLabels are a sandbox's, below a domain that no router of the file provider's matches. So only they lead there.
func (k *traefikProcess) ownLabels(name string) (labels map[string]string, host string) {
	k.t.Helper()
	hosts, err := hostname.New("https://" + k.authority(labelsDomain+"."+k.domain))
	if err != nil {
		k.t.Fatal(err)
	}
	labels = hosts.Labels("own"+name, name)
	labels["sandboxd.id"] = "own" + name
	return labels, hosts.Host(hostname.Target{Kind: hostname.Port, Name: name, Port: 3000})
}

// earlierLabels are those of a sandboxd that led Traefik straight to containers, behind a middleware of the file provider's.
func (k *traefikProcess) earlierLabels(name string) (labels map[string]string, host string) {
	host = "3000-" + name + "." + k.domain
	router := "traefik.http.routers.sbx-" + name + "."
	return map[string]string{
		"sandboxd.id": name, "traefik.enable": "true", router + "rule": "(Host(`" + host + "`)) && !HeaderRegexp(`Upgrade`, `.+`)", router + "priority": "1000",
		router + "middlewares": "sandboxd-auth@file,sandboxd-scrub@file", router + "service": "sbx-" + name, router + "entrypoints": "websecure",
		router + "tls": "true", "traefik.http.services.sbx-" + name + ".loadbalancer.server.port": "7880",
	}, host
}

func TestTraefik_LabelsLeadToSandboxdWhileTheContainerRuns(t *testing.T) {
	k := newTraefik(t)
	k.start(newSandboxdStandIn(t))
	client := k.client()
	for _, network := range []string{"bridge", "none"} { // as a strict sandbox, which has no address
		labels, host := k.ownLabels(network)
		if got := via(client, k.url(host, "/")); got != "404 Not Found" {
			t.Errorf("without the container %s leads to %s", host, got)
		}
		box := newLabelled(t, k, network, labels, "--network", network)
		k.until("the labels lead to sandboxd", func() bool { return via(client, k.url(host, "/")) == "sandboxd" })
		engine(t, "stop", "-t", "0", box.container)
		k.until("the route is gone", func() bool { return via(client, k.url(host, "/")) == "404 Not Found" })
		engine(t, "start", box.container)
		k.until("the route is back", func() bool { return via(client, k.url(host, "/")) == "sandboxd" })
	}
	labels, host := k.ownLabels("foreign")
	newLabelled(t, k, "foreign", labels, "--label", "sandboxd.instance=")
	later, laterHost := k.ownLabels("later")
	newLabelled(t, k, "later", later)
	k.until("a later container's labels lead to sandboxd", func() bool { return via(client, k.url(laterHost, "/")) == "sandboxd" })
	if got := via(client, k.url(host, "/")); got != "404 Not Found" {
		t.Errorf("the labels of a container that is no sandbox lead to %s", got)
	}
}

// Labels stay as they are for as long as their container lives. What an earlier version has written there leads to sandboxd,
// whether Traefik sees the engine through sandboxd's socket proxy or by itself.
func TestTraefik_LabelsOfAnEarlierVersionLeadToSandboxd(t *testing.T) {
	for way, endpoint := range map[string]string{"socket proxy": "", "engine": "DOCKER_ENDPOINT=unix://" + engineSocket} {
		t.Run(way, func(t *testing.T) {
			k := newTraefik(t)
			if endpoint != "" {
				k.env = append(k.env, endpoint)
			}
			k.start(newSandboxdStandIn(t))
			client := k.client()
			earlier, host := k.earlierLabels("earlier")
			box := newLabelled(t, k, "earlier", earlier)
			labels, marker := k.ownLabels("later")
			newLabelled(t, k, "later", labels)
			k.until("a later container's labels lead to sandboxd", func() bool {
				if got := via(client, k.url(host, "/")); got != "sandboxd" {
					t.Fatalf("the labels of an earlier version lead to %s", got)
				}
				return via(client, k.url(marker, "/")) == "sandboxd"
			})
			if got := via(client, k.url(host, "/")); got != "sandboxd" {
				t.Errorf("the labels of an earlier version lead to %s", got)
			}
			if got := via(http.DefaultClient, "http://"+box.address+"/"); got != "200 OK" {
				t.Errorf("what the labels name is not there, so this shows nothing: %s", got)
			}
		})
	}
}
