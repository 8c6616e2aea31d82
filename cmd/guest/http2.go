//go:build nethttpomithttp2

package main

// The link is HTTP/2 of net/http: a guest built with this tag could not say a word. So it does not compile.
var _ = build_without_the_tag_nethttpomithttp2
