package docker

import (
	"cmp"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/docker/docker/client"

	"sandboxd/internal/fault"
)

// Bounds on connections to the engine. answerLimit is a last resort beneath the calls' own deadlines: it is longer
// than any answer may lawfully take to begin.
const (
	idleConnections = 32 // as many as calls run side by side in a burst of creates
	idleLimit       = 30 * time.Second
	answerLimit     = 15 * time.Minute
)

// dial prepares a client for the engine at host, or that the environment names. It does no I/O.
func dial(host string) (*client.Client, error) {
	if host = cmp.Or(host, os.Getenv(client.EnvOverrideHost)); strings.HasPrefix(host, "ssh://") {
		return nil, fault.New(fault.Invalid, "DOCKER_HOST is %s, but sandboxes need an engine on this machine: use unix:// or tcp://.", host)
	}
	transport := &http.Transport{
		MaxIdleConns: idleConnections, MaxIdleConnsPerHost: idleConnections, IdleConnTimeout: idleLimit,
		ResponseHeaderTimeout: answerLimit,
	}
	hc := &http.Client{Transport: transport, CheckRedirect: client.CheckRedirect}
	cli, err := client.NewClientWithOpts(client.WithHTTPClient(hc), client.WithHost(client.DefaultDockerHost),
		client.FromEnv, client.WithHost(cmp.Or(host, client.DefaultDockerHost)), client.WithAPIVersionNegotiation())
	return cli, fault.Wrap(err, fault.Invalid, "The engine's address cannot be used: %v. Look at DOCKER_HOST.", err)
}
