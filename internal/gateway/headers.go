package gateway

import (
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
)

// dropped are headers of a request that do not reach a provider: those of one connection, credentials, and what tells of the sandbox.
var dropped = []string{
	"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "Cookie",
	"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "Via", "Origin", "Referer", "Expect", "Content-Length",
	insideMark,
}

// droppedAnswer are headers of an answer that do not reach a client. A Location may be of a network of ours.
var droppedAnswer = []string{
	"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authentication-Info", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	"Set-Cookie", "Set-Cookie2", "Www-Authenticate", "Location", "Content-Location", "Refresh", "Alt-Svc", "Strict-Transport-Security", "Clear-Site-Data",
	"Nel", "Report-To", "Reporting-Endpoints", "Link", "Sourcemap", "X-Sourcemap", "Service-Worker-Allowed", "Speculation-Rules", "Origin-Trial", "Accept-Ch", "Critical-Ch",
	"Content-Security-Policy", "Content-Security-Policy-Report-Only", "X-Frame-Options", "Referrer-Policy", "Permissions-Policy", // of our own origin, outside
	OwnHeader, "Openai-Organization", "Openai-Project", "Anthropic-Organization-Id", // whose account it is
}

func drop(h http.Header, names []string) {
	for _, value := range h["Connection"] {
		for name := range strings.SplitSeq(value, ",") {
			h.Del(textproto.TrimString(name))
		}
	}
	for _, name := range names {
		h.Del(name)
	}
}

// repeatable is a header with which net/http sends a request again, once, whose kept connection the provider has just closed.
const repeatable = "X-Idempotency-Key"

// headersFor gives the headers of a client's request as the provider gets them: with its own key.
func (c configured) headersFor(h http.Header) http.Header {
	h = h.Clone()
	drop(h, dropped)
	h.Set("Accept-Encoding", "identity") // the usage is read on the way
	if h.Get("User-Agent") == "" {
		h["User-Agent"] = []string{""} // or net/http puts its own there
	}
	c.authorize(h)
	if _, has := h[repeatable]; !has {
		h[repeatable] = nil // sends nothing
	}
	return h
}

// authorize puts the key where the provider's protocol has it.
func (c configured) authorize(h http.Header) {
	if c.Kind == Anthropic && h.Get("Anthropic-Version") == "" {
		h.Set("Anthropic-Version", "2023-06-01")
	}
	switch {
	case c.key == "":
	case c.Kind == Anthropic:
		h.Set("X-Api-Key", c.key)
	case c.Kind == Gemini:
		h.Set("X-Goog-Api-Key", c.key)
	default:
		h.Set("Authorization", "Bearer "+c.key)
	}
}

// queryFor gives a client's query without keys in it.
func queryFor(query string) string {
	var kept []string
	for part := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(part, "=")
		plain, err := url.QueryUnescape(name)
		switch {
		case err != nil || part == "":
		case strings.EqualFold(plain, "key") || strings.EqualFold(plain, "api_key") || strings.EqualFold(plain, "access_token"):
		default:
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, "&")
}

// copyHeaders gives a client the headers of an answer. A header with the provider's key in it is left out.
func copyHeaders(to, from http.Header, key string) {
	from = from.Clone()
	drop(from, droppedAnswer)
	for name, values := range from {
		if name == "Content-Type" {
			values = values[:1] // by which it was judged: browsers believe the last one
		}
		if strings.HasPrefix(name, "Access-Control-") || strings.HasPrefix(name, "Cross-Origin-") {
			continue
		}
		if key == "" || !strings.Contains(strings.Join(values, "\n"), key) {
			to[name] = values
		}
	}
	to.Set("X-Content-Type-Options", "nosniff")
}
