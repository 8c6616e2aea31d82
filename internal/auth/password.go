package auth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"sandboxd/internal/fault"
)

// What a password must be. The upper bound keeps hashing cheap for everybody.
const (
	minPassword = 10  // characters
	maxPassword = 200 // characters
)

// CheckPassword gives an Invalid fault about the field "password" that says what to change.
func CheckPassword(name, password string) error {
	n := utf8.RuneCountInString(password)
	switch {
	case !utf8.ValidString(password):
		return fault.Field("password", "The password holds characters that are not valid text. Type it anew.")
	case n == 0:
		return fault.Field("password", "Choose a password of at least %d characters.", minPassword)
	case n < minPassword:
		return fault.Field("password", "The password is too short: use at least %d characters.", minPassword)
	case n > maxPassword:
		return fault.Field("password", "The password is too long: use at most %d characters.", maxPassword)
	case strings.EqualFold(strings.TrimSpace(password), name):
		return fault.Field("password", "The password must not be the user name.")
	case strings.TrimLeft(password, string([]rune(password)[:1])) == "":
		return fault.Field("password", "The password must not be one character repeated.")
	}
	return nil
}

// Cost is what hashing a password costs an attacker, and us.
type Cost struct {
	Memory uint32 // KiB
	Passes uint32
}

// recommended is OWASP's first choice for argon2id with one lane: 19 MiB and two passes.
var recommended = Cost{Memory: 19 << 10, Passes: 2}

const (
	saltLength  = 16
	hashLength  = 32
	maxMemory   = 256 << 10 // KiB; a hash that asks for more is damaged
	maxPasses   = 16
	maxParallel = 4               // hashes at once, whatever the number of cores: 76 MiB
	maxWaiting  = 32              // callers that wait for their turn; at about 25 ms each this is a second
	busyRetry   = 3 * time.Second // what the others are told
)

var errBadHash = errors.New("the kept password hash is damaged")

// hasher hashes passwords with argon2id, few at a time, so that a flood of logins takes neither all memory nor all
// cores. Hashes are in the usual text form: $argon2id$v=19$m=19456,t=2,p=1$salt$hash.
type hasher struct {
	cost    Cost
	turns   chan struct{}
	waiting atomic.Int32
	decoy   string // what the password of an unknown user is compared with
}

func newHasher(c Cost) *hasher {
	if c == (Cost{}) {
		c = recommended
	}
	turns := min(max(runtime.GOMAXPROCS(0)/2, 1), maxParallel)
	h := &hasher{cost: c, turns: make(chan struct{}, turns)}
	h.decoy = format(c, make([]byte, saltLength), make([]byte, hashLength))
	return h
}

// turn waits for a place among those that hash, until ctx ends. The caller must call done.
func (h *hasher) turn(ctx context.Context) (done func(), err error) {
	if h.waiting.Add(1) > maxWaiting {
		h.waiting.Add(-1)
		return nil, limited(busyRetry, "Too many people are signing in at once.")
	}
	defer h.waiting.Add(-1)
	select {
	case h.turns <- struct{}{}:
		return func() { <-h.turns }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait to hash a password: %w", ctx.Err())
	}
}

// make hashes a password with a fresh salt.
func (h *hasher) make(ctx context.Context, password string) (string, error) {
	done, err := h.turn(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	salt := make([]byte, saltLength)
	rand.Read(salt) // never fails since Go 1.24
	sum := argon2.IDKey([]byte(password), salt, h.cost.Passes, h.cost.Memory, 1, hashLength)
	return format(h.cost, salt, sum), nil
}

// verify reports whether password belongs to hash. It does the same work when hash is "", and then says no.
func (h *hasher) verify(ctx context.Context, hash, password string) (bool, error) {
	known := hash != ""
	if !known {
		hash = h.decoy
	}
	cost, salt, want, err := parseHash(hash)
	if err != nil {
		return false, err
	}
	done, err := h.turn(ctx)
	if err != nil {
		return false, err
	}
	defer done()
	got := argon2.IDKey([]byte(password), salt, cost.Passes, cost.Memory, 1, uint32(len(want)))
	return subtle.ConstantTimeCompare(got, want) == 1 && known, nil
}

func format(c Cost, salt, sum []byte) string {
	b64 := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=1$%s$%s", argon2.Version, c.Memory, c.Passes, b64(salt), b64(sum))
}

func parseHash(s string) (c Cost, salt, sum []byte, err error) {
	parts := strings.Split(s, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return c, nil, nil, errBadHash
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=1", &c.Memory, &c.Passes); err != nil {
		return c, nil, nil, errBadHash
	}
	salt, err1 := base64.RawStdEncoding.DecodeString(parts[4])
	sum, err2 := base64.RawStdEncoding.DecodeString(parts[5])
	fits := c.Memory > 0 && c.Memory <= maxMemory && c.Passes > 0 && c.Passes <= maxPasses &&
		len(salt) >= 8 && len(sum) == hashLength
	if err1 != nil || err2 != nil || !fits {
		return c, nil, nil, errBadHash
	}
	return c, salt, sum, nil
}
