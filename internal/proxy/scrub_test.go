package proxy

import (
	"net/http"
	"testing"
)

func FuzzOwnCookie(f *testing.F) {
	for _, seed := range []string{"a=1", "a=1; Domain=x", "sandboxd=1", "=x", "a=1;domain"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if !ownCookie(line) {
			return
		}
		c, err := http.ParseSetCookie(line)
		if err == nil && (c.Domain != "" || ourCookie(c.Name)) {
			t.Fatalf("%q passes as %+v", line, c)
		}
	})
}

func TestOwnCookie_CookiesWithControlCharactersAreDropped(t *testing.T) {
	for _, line := range []string{"a=1\x01; Path=/", "a=1\x00", "a=1\r; Domain=x", "a\x7f=1"} {
		if ownCookie(line) {
			t.Errorf("%q passes", line)
		}
	}
}
