package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sandboxd/internal/hostname"
	"sandboxd/internal/text"
)

// lowDisk is the free space below which building a template may fail: a base image and one template's layers.
const lowDisk = 5 << 30

func lookData(_ context.Context, c *Config) finding {
	folder := existing(c.Data)
	if err := unix.Access(folder, unix.W_OK|unix.X_OK); err != nil {
		return problem("Make it writable for this user, or choose another with --data.", "%s is not writable: %v", folder, err)
	}
	return ok("data in %s", c.Data)
}

// existing gives the folder, or the one that it would be made in.
func existing(folder string) string {
	for folder = filepath.Clean(folder); folder != "/" && folder != "."; folder = filepath.Dir(folder) {
		if _, err := os.Stat(folder); err == nil {
			break
		}
	}
	return folder
}

func lookDisk(_ context.Context, c *Config) finding {
	folder := existing(c.Data)
	var st syscall.Statfs_t
	if err := syscall.Statfs(folder, &st); err != nil {
		return warn("", "free space under %s cannot be told: %v", folder, err)
	}
	free := st.Bavail * uint64(st.Bsize)
	if free < lowDisk {
		return warn("Free some space: 'docker system df' shows what images and volumes take.", "only %s free under %s", text.Size(int64(free)), folder)
	}
	return ok("%s free under %s", text.Size(int64(free)), folder)
}

func lookDNS(ctx context.Context, c *Config) finding {
	hosts, err := c.hosts()
	if err != nil {
		return problem("Mend --domain or --public-url.", "%v", err)
	}
	name := "doctor." + hosts.Domain
	addrs, err := net.DefaultResolver.LookupHost(ctx, name)
	if err == nil {
		return ok("%s resolves to %s", name, strings.Join(addrs, ", "))
	}
	if hosts.Domain == "localhost" {
		return warn("Browsers and curl resolve *.localhost themselves. For other programs install libnss-myhostname, or send a Host header to the listening address.",
			"this system's resolver does not know *.localhost")
	}
	return problem("Make a wildcard DNS record *."+hosts.Domain+" that points here.", "%s does not resolve", name)
}

func lookPort(ctx context.Context, c *Config) finding {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen)
	if err == nil {
		if err := l.Close(); err != nil {
			return warn("", "closing the port again: %v", err)
		}
		return ok("%s is free", c.Listen)
	}
	if errors.Is(err, syscall.EADDRINUSE) && servesHere(ctx, c) {
		return ok("a sandboxd serves on %s", c.Listen)
	}
	return problem("End the program that has it (ss -ltnp tells which), or choose another with --listen.", "cannot serve on %s: %v", c.Listen, err)
}

// servesHere reports whether a sandboxd that is configured as c says answers where it is to listen.
func servesHere(ctx context.Context, c *Config) bool {
	hosts, err := c.hosts()
	if err != nil {
		return false
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.Listen+"/healthz", nil)
	if err != nil {
		return false
	}
	req.Host = hosts.Host(hostname.Target{Kind: hostname.Dashboard})
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
}

func lookSwap(context.Context, *Config) finding {
	total, err := memFigure("SwapTotal")
	if err != nil {
		return warn("", "swap cannot be told: %v", err)
	}
	if total == 0 {
		return ok("no swap") // what that costs, and whether some would help, the check of freezing says
	}
	return ok("%s of swap", text.Size(total))
}

func lookBridge(context.Context, *Config) finding {
	const path = "/proc/sys/net/bridge/bridge-nf-call-iptables"
	text, err := os.ReadFile(path)
	if err == nil && strings.TrimSpace(string(text)) == "1" {
		return ok("sandboxes are kept apart by the bridge's filter")
	}
	if errors.Is(err, os.ErrNotExist) {
		return warn("Load the kernel module: modprobe br_netfilter (the engine does so when it makes the first network).", "the bridge's filter is not loaded yet")
	}
	return problem("sysctl -w net.bridge.bridge-nf-call-iptables=1", "the bridge's filter is off: sandboxes could reach each other")
}
