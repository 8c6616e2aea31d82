package web

import (
	"bytes"
	"compress/gzip"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"
)

// Pages are compressed above this size: below it the answer is one packet anyway. No page holds a secret beside text
// that an attacker could choose repeatedly, so its size tells nothing (BREACH).
const (
	compressFrom  = 1400
	compressLevel = 5
)

var compressors = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, compressLevel)
	if err != nil {
		panic(err) // the level is a valid one
	}
	return w
}}

// writePage answers with a page, compressed where the browser takes that.
func writePage(c echo.Context, status int, page []byte) error {
	h := c.Response().Header()
	h.Add("Vary", "Accept-Encoding")
	if len(page) < compressFrom || !strings.Contains(c.Request().Header.Get("Accept-Encoding"), "gzip") {
		return c.HTMLBlob(status, page)
	}
	w := compressors.Get().(*gzip.Writer)
	defer compressors.Put(w)
	var b bytes.Buffer
	w.Reset(&b)
	if _, err := w.Write(page); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	h.Set("Content-Encoding", "gzip")
	return c.HTMLBlob(status, b.Bytes())
}
