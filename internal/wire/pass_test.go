package wire

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"
)

func passKey(b byte) []byte { return bytes.Repeat([]byte{b}, GatewayKeySize) }

func TestPass_OpensTheGatewayForItsHostAndTimeAlone(t *testing.T) {
	key, host := passKey(1), "8080-box.example.com"
	good := NewPass(key, host, someTime.Add(PassLife))
	outside := NewOutsiderPass(key, host, someTime.Add(PassLife))
	stamp := strconv.FormatInt(someTime.Add(PassLife).Unix(), 10)
	forged := func(expiry, version string) string {
		sum := signPass(key, passVersion, host, expiry)
		return version + "." + expiry + "." + base64.RawURLEncoding.EncodeToString(sum)
	}
	for name, c := range map[string]struct {
		key        []byte
		pass, host string
		now        time.Time
		opens      bool
	}{
		"as issued":            {key, good, host, someTime, true},
		"upper case":           {key, good, "8080-BOX.example.COM", someTime, true},
		"with a port":          {key, good, host + ":8443", someTime, true},
		"with a trailing dot":  {key, good, host + ".:8443", someTime, true},
		"the last second":      {key, good, host, someTime.Add(PassLife - time.Second), true},
		"over":                 {key, good, host, someTime.Add(PassLife), false},
		"long over":            {key, good, host, someTime.Add(time.Hour), false},
		"a clock behind":       {key, good, host, someTime.Add(-PassLife), true},
		"from far ahead":       {key, good, host, someTime.Add(-PassLife - 2*time.Second), false},
		"another port":         {key, good, "8081-box.example.com", someTime, false},
		"another sandbox":      {key, good, "8080-bok.example.com", someTime, false},
		"another domain":       {key, good, "8080-box.example.org", someTime, false},
		"no host":              {key, good, "", someTime, false},
		"another key":          {passKey(2), good, host, someTime, false},
		"no key":               {nil, good, host, someTime, false},
		"short key":            {key[1:], good, host, someTime, false},
		"no pass":              {key, "", host, someTime, false},
		"no signature":         {key, passVersion + "." + stamp + ".", host, someTime, false},
		"half a signature":     {key, good[:len(good)-10], host, someTime, false},
		"more behind it":       {key, good + "A", host, someTime, false},
		"a dot behind it":      {key, good + ".", host, someTime, false},
		"space before it":      {key, " " + good, host, someTime, false},
		"another version":      {key, forged(stamp, "3"), host, someTime, false},
		"an outsider's":        {key, outside, host, someTime, true},
		"an outsider's, over":  {key, outside, host, someTime.Add(PassLife), false},
		"made an insider's":    {key, passVersion + outside[1:], host, someTime, false},
		"made an outsider's":   {key, forged(stamp, outsiderVersion), host, someTime, false},
		"no number":            {key, forged("soon", passVersion), host, someTime, false},
		"a huge number":        {key, forged("99999999999999999999", passVersion), host, someTime, false},
		"a later expiry":       {key, strings.Replace(good, stamp, stamp+"0", 1), host, someTime, false},
		"far too long":         {key, good + strings.Repeat("A", 1<<20), host, someTime, false},
		"an address":           {key, NewPass(key, "[::1]:80", someTime.Add(PassLife)), "[::1]", someTime, true},
		"an address, other":    {key, NewPass(key, "[::1]", someTime.Add(PassLife)), "[::2]:80", someTime, false},
		"issued without a key": {key, NewPass(nil, host, someTime.Add(PassLife)), host, someTime, false},
	} {
		err := CheckPass(c.key, c.pass, c.host, c.now)
		if (err == nil) != c.opens || err != nil && !errors.Is(err, ErrPass) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if strings.Contains(good, "box") || len(good) > maxPass {
		t.Errorf("the pass is %q", good)
	}
}

func TestPass_TellsOutsidersFromOthers(t *testing.T) {
	key, host, until := passKey(1), "8080-box.example.com", someTime.Add(PassLife)
	if outside, good := NewOutsiderPass(key, host, until), NewPass(key, host, until); !IsOutsiderPass(outside) || IsOutsiderPass(good) {
		t.Errorf("%q and %q are taken for each other", good, outside)
	}
}

// FuzzPass: nothing opens the gateway but what NewPass gives for the same host and a time that is near.
func FuzzPass(f *testing.F) {
	key := passKey(1)
	f.Add(NewPass(key, "8080-box.example.com", someTime.Add(PassLife)), "8080-box.example.com")
	f.Add("1.1795253460.AAAA", "a")
	f.Add("1..", "[::1]:80")
	f.Fuzz(func(t *testing.T, pass, host string) {
		if CheckPass(key, pass, host, someTime) != nil {
			return
		}
		for s := range int64(2*PassLife/time.Second) + 1 {
			until := someTime.Add(time.Duration(s) * time.Second)
			if NewPass(key, host, until) == pass || NewOutsiderPass(key, host, until) == pass {
				return
			}
		}
		t.Fatalf("%q opens %q", pass, host)
	})
}
