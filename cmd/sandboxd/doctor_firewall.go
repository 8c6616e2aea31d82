package main

import (
	"context"
	"os"
	"strings"

	"sandboxd/internal/fault"
	"sandboxd/internal/firewall"
)

// lookFirewall tells whether sandboxes can be kept off this host. It asks as the user who runs doctor, and changes nothing.
func lookFirewall(context.Context, *Config) finding {
	if _, err := firewall.Open("doctor"); err != nil {
		return noFirewall(err, os.Geteuid())
	}
	return ok("sandboxes are kept off this host's own services and link-local addresses")
}

// noFirewall is what err means to the user uid. One who is not root often may not even see the tool, and is perhaps not
// the one who runs sandboxd.
func noFirewall(err error, uid int) finding {
	if uid != 0 {
		return warn("Run sandboxd as root, or give it NET_ADMIN; run doctor in the same way to see whether that is enough.",
			"this user cannot change the kernel's packet filter: with a sandboxd that runs as this user, sandboxes can reach services of this host that listen on all addresses")
	}
	saw, mend, _ := strings.Cut(fault.Message(err), ". ")
	return problem(mend, "%s", clause(saw))
}
