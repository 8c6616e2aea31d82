package sandboxtest

import (
	"crypto/sha256"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// Rule gives a rule of a port.
func Rule(sandboxID string, port int, v sandbox.Visibility) sandbox.PortRule {
	return sandbox.PortRule{SandboxID: sandboxID, Port: port, Visibility: v}
}

// Share gives a valid share of a port, made minutes after a fixed time.
func Share(sandboxID string, port, minutes int) sandbox.Share {
	made := time.Date(2026, 11, 21, 9, 0, 0, 123456000, time.UTC).Add(time.Duration(minutes) * time.Minute)
	id := sandbox.NewID()
	return sandbox.Share{ID: id, SandboxID: sandboxID, Port: port, Hash: sha256.Sum256([]byte(id)), Label: "for 'Grace'\n" + id,
		Owner: "owner-1", Created: made, Expires: made.Add(time.Hour)}
}

// PortStores are a store of ports' rules and shares and the store of the sandboxes whose ports they are.
type PortStores struct {
	Ports     sandbox.PortStore
	Sandboxes sandbox.Store
}

// RunPorts checks that what open gives keeps sandbox.PortStore's contract. open is as for RunStore.
func RunPorts(t *testing.T, open func(t *testing.T) PortStores) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(*testing.T, PortStores, string)
	}{
		{"EveryFieldComesBackInOrder", portsRoundTrip},
		{"PutRuleReplacesAndKeepsShares", portsReplace},
		{"DeleteRuleTakesItsPortsSharesAlone", portsPrivate},
		{"DeleteShareLeavesTheRule", portsUnshare},
		{"ShareOfAPortWithoutARuleMakesIt", portsShareMakesRule},
		{"ShareIsAddedOnce", portsShareOnce},
		{"AllGoWithTheirSandbox", portsCascade},
		{"PortsOfNothingAreNotFound", portsOrphan},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t)
			a := Sandbox("a", 0)
			mustInsert(t, s.Sandboxes, a)
			c.run(t, s, a.ID)
		})
	}
}

// wantPorts checks that these are all, in this order.
func wantPorts(t *testing.T, s PortStores, rules []sandbox.PortRule, shares []sandbox.Share) {
	t.Helper()
	gotRules, gotShares, err := s.Ports.Rules(t.Context())
	must(t, err)
	if diff := cmp.Diff(rules, gotRules); diff != "" {
		t.Errorf("rules differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(shares, gotShares); diff != "" {
		t.Errorf("shares differ (-want +got):\n%s", diff)
	}
}

func (s PortStores) putRules(t *testing.T, rules ...sandbox.PortRule) {
	t.Helper()
	for _, r := range rules {
		must(t, s.Ports.PutRule(t.Context(), r))
	}
}

func (s PortStores) putShares(t *testing.T, shares ...sandbox.Share) {
	t.Helper()
	for _, h := range shares {
		must(t, s.Ports.PutShare(t.Context(), h))
	}
}

func portsRoundTrip(t *testing.T, s PortStores, id string) {
	wantPorts(t, s, nil, nil)
	one, two, most := Rule(id, 1, sandbox.Public), Rule(id, 3000, sandbox.Shared), Rule(id, 65535, sandbox.Public)
	s.putRules(t, most, two, one)
	late, early, expired := Share(id, 3000, 5), Share(id, 1, 1), Share(id, 3000, 3)
	expired.Label, expired.Expires = "", expired.Created.Add(time.Nanosecond).Add(time.Microsecond)
	s.putShares(t, late, early, expired)
	expired.Expires = kept(expired.Expires)
	wantPorts(t, s, []sandbox.PortRule{one, two, most}, []sandbox.Share{early, expired, late})
}

func portsReplace(t *testing.T, s PortStores, id string) {
	h := Share(id, 3000, 0)
	s.putRules(t, Rule(id, 3000, sandbox.Shared))
	s.putShares(t, h)
	s.putRules(t, Rule(id, 3000, sandbox.Public))
	wantPorts(t, s, []sandbox.PortRule{Rule(id, 3000, sandbox.Public)}, []sandbox.Share{h})
}

func portsPrivate(t *testing.T, s PortStores, id string) {
	other := Share(id, 3001, 1)
	s.putRules(t, Rule(id, 3000, sandbox.Shared), Rule(id, 3001, sandbox.Shared))
	s.putShares(t, Share(id, 3000, 0), other)
	for range 2 {
		must(t, s.Ports.DeleteRule(t.Context(), id, 3000))
	}
	wantPorts(t, s, []sandbox.PortRule{Rule(id, 3001, sandbox.Shared)}, []sandbox.Share{other})
}

func portsUnshare(t *testing.T, s PortStores, id string) {
	h, other := Share(id, 3000, 0), Share(id, 3000, 1)
	s.putShares(t, h, other)
	for range 2 {
		must(t, s.Ports.DeleteShare(t.Context(), h.ID))
	}
	wantPorts(t, s, []sandbox.PortRule{Rule(id, 3000, sandbox.Shared)}, []sandbox.Share{other})
}

func portsShareMakesRule(t *testing.T, s PortStores, id string) {
	made, kept := Share(id, 3000, 0), Share(id, 8080, 1)
	s.putRules(t, Rule(id, 8080, sandbox.Public))
	s.putShares(t, made, kept)
	wantPorts(t, s, []sandbox.PortRule{Rule(id, 3000, sandbox.Shared), Rule(id, 8080, sandbox.Public)}, []sandbox.Share{made, kept})
}

func portsShareOnce(t *testing.T, s PortStores, id string) {
	h := Share(id, 3000, 0)
	s.putShares(t, h)
	sameID, sameHash := Share(id, 3001, 1), Share(id, 3001, 2)
	sameID.ID, sameHash.Hash = h.ID, h.Hash
	wantKind(t, "share twice by id", s.Ports.PutShare(t.Context(), sameID), fault.Conflict)
	wantKind(t, "share twice by hash", s.Ports.PutShare(t.Context(), sameHash), fault.Conflict)
	_, shares, err := s.Ports.Rules(t.Context())
	must(t, err)
	if diff := cmp.Diff([]sandbox.Share{h}, shares); diff != "" {
		t.Error(diff)
	}
}

func portsCascade(t *testing.T, s PortStores, id string) {
	b := Sandbox("b", 1)
	mustInsert(t, s.Sandboxes, b)
	other := Share(b.ID, 3000, 1)
	s.putShares(t, Share(id, 3000, 0), other)
	must(t, s.Sandboxes.Delete(t.Context(), id))
	wantPorts(t, s, []sandbox.PortRule{Rule(b.ID, 3000, sandbox.Shared)}, []sandbox.Share{other})
	again := Sandbox("a", 2) // of the same name
	mustInsert(t, s.Sandboxes, again)
	wantPorts(t, s, []sandbox.PortRule{Rule(b.ID, 3000, sandbox.Shared)}, []sandbox.Share{other})
}

func portsOrphan(t *testing.T, s PortStores, _ string) {
	wantKind(t, "rule of nothing", s.Ports.PutRule(t.Context(), Rule("never-was", 1, sandbox.Public)), fault.NotFound)
	wantKind(t, "share of nothing", s.Ports.PutShare(t.Context(), Share("never-was", 1, 0)), fault.NotFound)
	wantPorts(t, s, nil, nil)
}
