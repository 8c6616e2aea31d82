package main

import (
	"net"
	"net/http"
	"net/url"
	"strings"
)

// fromPage reports whether a page that a browser in the sandbox shows asks for a model, and not a program of the sandbox: any page of the
// internet can send requests to the browser's own computer, and would have the sandbox's owner pay for them. Such a request has the Origin
// of another computer, or names one as its Host when the page's name was led here.
func fromPage(r *http.Request) bool {
	if r.Host != "" && !isHere((&url.URL{Host: r.Host}).Hostname()) {
		return true
	}
	for _, origin := range r.Header["Origin"] {
		u, err := url.Parse(origin)
		if err != nil || !isHere(u.Hostname()) { // "null" too
			return true
		}
	}
	return false
}

// isHere reports whether a host is the computer that asks.
func isHere(host string) bool {
	host = strings.ToLower(host)
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}
