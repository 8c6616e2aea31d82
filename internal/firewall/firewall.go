// Package firewall keeps sandboxes off this host and off what a cloud tells its machines: rules in the host's kernel for
// the sandboxes' bridge, which nothing inside a sandbox can change.
//
// It does not keep sandboxes apart (the engine does, on that bridge) and does not bound what they reach outside.
//
// Invariant: rules go by the interface that a packet comes in on, never by its source address, which a sandbox can
// choose. A repeat changes nothing, except that rules removed by others are put back.
package firewall

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/coreos/go-iptables/iptables"

	"sandboxd/internal/fault"
)

// waitSeconds is how long one call waits for others who change rules.
const waitSeconds = 5

// Where the kernel's filter, and the engine, let us in.
const (
	table   = "filter"
	input   = "INPUT"
	forward = "FORWARD"
	engines = "DOCKER-USER" // where the engine lets others judge before it does, also after its own restart
)

// private are the addresses behind the bridge that no sandbox has business with: link-local ones, where clouds tell a
// machine its secrets, and the other places where some do.
var private = []string{"169.254.0.0/16", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32"}

// Rules are those of one instance of sandboxd. Safe for concurrent use.
type Rules struct {
	tables *iptables.IPTables
	chains chains
	public []int // TCP ports of this host that sandboxes may use as anybody may

	mu sync.Mutex // one change at a time
}

// chains are the names of our own chains, which must not be longer than 28 bytes.
type chains struct{ host, outside string }

// Open finds the tool that changes the kernel's rules. Sandboxes keep the way to the TCP ports public of this host, where
// sandboxd's own addresses are served. Unavailable, with what to do, when there is no such tool or we may not use it.
func Open(instance string, public ...int) (*Rules, error) {
	if _, err := exec.LookPath("iptables"); err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "iptables is not installed, so sandboxes can reach services of this host that listen on all addresses. Install iptables.")
	}
	t, err := iptables.New(iptables.IPFamily(iptables.ProtocolIPv4), iptables.Timeout(waitSeconds))
	if err == nil {
		_, err = t.ListChains(table)
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "The kernel's packet filter cannot be changed from here, so sandboxes can reach services of this host that listen on all addresses. Run sandboxd as root, or give it NET_ADMIN.")
	}
	h := fnv.New64a()
	h.Write([]byte(instance))
	id := strconv.FormatUint(h.Sum64(), 36)
	return &Rules{tables: t, chains: chains{host: "SANDBOXD-" + id + "-H", outside: "SANDBOXD-" + id + "-O"}, public: public}, nil
}

// Guard sets the rules for traffic that comes in on bridge. Repeating it is no error and costs little; with another bridge
// the rules for the former are gone. It blocks for some milliseconds, and for some seconds when others hold the kernel's lock.
func (r *Rules) Guard(ctx context.Context, bridge string) error {
	if bridge == "" || len(bridge) > 15 || strings.ContainsAny(bridge, " /!+") {
		return fault.New(fault.Invalid, "%q is not the name of an interface.", bridge)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	err := r.chain(r.chains.host, r.hostRules())
	if err == nil {
		err = r.chain(r.chains.outside, outsideRules())
	}
	if err == nil {
		err = r.lead(input, r.chains.host, bridge)
	}
	var from string
	if err == nil {
		from, err = r.passage()
	}
	if err == nil {
		err = r.lead(from, r.chains.outside, bridge)
	}
	return refused(err, "keep sandboxes off this host")
}

// passage is the chain that judges first what goes through this host.
func (r *Rules) passage() (string, error) {
	exists, err := r.tables.ChainExists(table, engines)
	if err != nil {
		return "", fmt.Errorf("look for chain %s: %w", engines, err)
	}
	if exists {
		return engines, nil
	}
	return forward, nil
}

// hostRules judge what a sandbox sends to this host itself: answers to what the host asked for pass.
func (r *Rules) hostRules() [][]string {
	rules := [][]string{{"-m", "conntrack", "--ctstate", "ESTABLISHED,RELATED", "-j", "RETURN"}}
	for _, port := range r.public {
		rules = append(rules, []string{"-p", "tcp", "-m", "tcp", "--dport", strconv.Itoa(port), "-j", "RETURN"})
	}
	return append(rules, refusals()...)
}

// refusals refuse all that comes to them. TCP is reset, so that a program hears at once: the kernel sends the other
// word only so often.
func refusals(match ...string) [][]string {
	return [][]string{
		slices.Concat(match, []string{"-p", "tcp", "-j", "REJECT", "--reject-with", "tcp-reset"}),
		slices.Concat(match, []string{"-j", "REJECT", "--reject-with", "icmp-port-unreachable"}),
	}
}

// outsideRules judge what a sandbox sends through this host.
func outsideRules() [][]string {
	var rules [][]string
	for _, to := range private {
		rules = append(rules, refusals("-d", to)...)
	}
	return rules
}

// chain makes a chain of ours hold just these rules. One that holds them already is left alone.
func (r *Rules) chain(name string, rules [][]string) error {
	exists, err := r.tables.ChainExists(table, name)
	if err != nil {
		return fmt.Errorf("look for chain %s: %w", name, err)
	}
	if exists && r.holds(name, rules) {
		return nil
	}
	if err := r.tables.ClearChain(table, name); err != nil { // makes it too
		return fmt.Errorf("make chain %s: %w", name, err)
	}
	for _, rule := range rules {
		if err := r.tables.Append(table, name, rule...); err != nil {
			return fmt.Errorf("add to chain %s: %w", name, err)
		}
	}
	return nil
}

func (r *Rules) holds(name string, rules [][]string) bool {
	list, err := r.tables.List(table, name)
	if err != nil || len(list) != len(rules)+1 { // the first line is the chain's own
		return false
	}
	for _, rule := range rules {
		if ok, err := r.tables.Exists(table, name, rule...); err != nil || !ok {
			return false
		}
	}
	return true
}

// lead sends traffic from bridge through our chain before any other rule.
func (r *Rules) lead(from, to, bridge string) error {
	rule := []string{"-i", bridge, "-j", to}
	list, err := r.tables.List(table, from)
	if err != nil {
		return fmt.Errorf("list chain %s: %w", from, err)
	}
	if len(list) > 1 && list[1] == "-A "+from+" "+strings.Join(rule, " ") {
		return nil // first in its chain: nothing can let a packet through before
	}
	if err := r.tables.Insert(table, from, 1, rule...); err != nil {
		return fmt.Errorf("insert into chain %s: %w", from, err)
	}
	return r.unlead(from, to, 1)
}

// unlead removes the rules that lead to a chain of ours, but the first keep.
func (r *Rules) unlead(from, to string, keep int) error {
	list, err := r.tables.List(table, from)
	if err != nil {
		return fmt.Errorf("list chain %s: %w", from, err)
	}
	var places []int
	for n, line := range list[1:] {
		if strings.HasSuffix(line, " -j "+to) {
			places = append(places, n+1)
		}
	}
	for n := len(places) - 1; n >= keep; n-- {
		if err := r.tables.DeleteById(table, from, places[n]); err != nil {
			return fmt.Errorf("delete from chain %s: %w", from, err)
		}
	}
	return nil
}

// Lift removes the rules. No rules is no error.
func (r *Rules) Lift(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	from, err := r.passage()
	if err == nil {
		err = errors.Join(r.unlead(input, r.chains.host, 0), r.unlead(from, r.chains.outside, 0))
	}
	for _, name := range []string{r.chains.host, r.chains.outside} {
		exists, findErr := r.tables.ChainExists(table, name)
		if err = errors.Join(err, findErr); exists {
			err = errors.Join(err, r.tables.ClearAndDeleteChain(table, name))
		}
	}
	return refused(err, "take the rules for the sandboxes' network down")
}

// refused classifies an error of the tool.
func refused(err error, what string) error {
	return fault.Wrap(err, fault.Unavailable, "The kernel's packet filter did not let sandboxd %s: %v.", what, err)
}
