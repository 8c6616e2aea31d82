package main

import (
	"path/filepath"

	"sandboxd/internal/sshd"
	"sandboxd/internal/tunnel"
)

func hostKeyPath(c *Config) string { return filepath.Join(c.Data, "ssh_host_ed25519_key") }

// newSSH puts together what speaks SSH and what leads to ports.
func (a *app) newSSH() (*sshd.Server, *tunnel.Service, error) {
	key, err := sshd.OpenHostKey(hostKeyPath(a.config))
	if err != nil {
		return nil, nil, err
	}
	ports := tunnel.New()
	return sshd.New(sshd.Config{Key: key, Ports: ports, Log: a.log}), ports, nil
}
