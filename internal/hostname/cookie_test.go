package hostname

import (
	"net/http"
	"strings"
	"testing"
)

func TestForgetCookie_IsSmallForAnyPath(t *testing.T) {
	for path, most := range map[string]int{"/app/x": 20, "/" + strings.Repeat("a", 60_000): 4, strings.Repeat("/"+strings.Repeat("b", 200), 300): 12} {
		h := http.Header{}
		ForgetCookie(h, "sandboxd_host", "3000-ml.box.example.com", path)
		if n := len(h.Values("Set-Cookie")); n == 0 || n > most {
			t.Errorf("%.20s: %d cookies, %d at most", path, n, most)
		}
	}
	h := http.Header{}
	if ForgetCookie(h, "__Host-sandboxd_host", "3000-ml.box.example.com", "/app"); len(h) != 0 {
		t.Errorf("a cookie that no other host can set: %v", h)
	}
}
