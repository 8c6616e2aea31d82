//go:build engine

package docker

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
)

// registry serves one image of one small layer, as registries do.
func registry(t *testing.T, name string) (host string) {
	t.Helper()
	var plain bytes.Buffer
	w := tar.NewWriter(&plain)
	text := []byte("from a registry\n")
	if err := w.WriteHeader(&tar.Header{Name: "note", Mode: 0o644, Size: int64(len(text))}); err != nil {
		t.Fatal(err)
	}
	w.Write(text)
	w.Close()
	var layer bytes.Buffer
	z := gzip.NewWriter(&layer)
	z.Write(plain.Bytes())
	z.Close()
	config := jsonOf(t, said{"architecture": "amd64", "os": "linux", "config": said{}, "rootfs": said{"type": "layers", "diff_ids": []string{digest(plain.Bytes())}}})
	manifest := jsonOf(t, said{
		"schemaVersion": 2, "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
		"config": said{"mediaType": "application/vnd.docker.container.image.v1+json", "size": len(config), "digest": digest(config)},
		"layers": []said{{"mediaType": "application/vnd.docker.image.rootfs.diff.tar.gzip", "size": layer.Len(), "digest": digest(layer.Bytes())}},
	})
	blobs := map[string][]byte{digest(config): config, digest(layer.Bytes()): layer.Bytes()}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		last := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
		switch {
		case r.URL.Path == "/v2/":
		case strings.HasPrefix(r.URL.Path, "/v2/"+name+"/manifests/") && (last == "1" || last == digest(manifest)):
			w.Header().Set("Content-Type", "application/vnd.docker.distribution.manifest.v2+json")
			w.Header().Set("Docker-Content-Digest", digest(manifest))
			w.Write(manifest)
		case blobs[last] != nil:
			w.Write(blobs[last])
		default:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			w.Write(jsonOf(t, said{"errors": []said{{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}}}))
		}
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func jsonOf(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func TestPull_FromARegistry(t *testing.T) {
	e := openTest(t)
	ref := registry(t, "some/image") + "/some/image:1"
	removeImage(t, e, ref)
	var lines []string
	if err := e.PullImage(t.Context(), ref, func(ev catalog.BuildEvent) { lines = append(lines, ev.Line) }); err != nil {
		t.Fatal(err)
	}
	if has, err := e.HasImage(t.Context(), ref); err != nil || !has {
		t.Errorf("got %t %v", has, err)
	}
	if len(lines) == 0 || !strings.Contains(strings.Join(lines, "\n"), "Pull complete") {
		t.Errorf("got the lines %q", lines)
	}
	if err := e.PullImage(t.Context(), ref, func(catalog.BuildEvent) {}); err != nil {
		t.Errorf("once more: %v", err)
	}
}

func TestPull_RealRefusals(t *testing.T) {
	e := openTest(t)
	host := registry(t, "some/image")
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for ref, want := range map[string]fault.Kind{
		host + "/some/image:2":                   fault.NotFound,
		host + "/other/image:1":                  fault.NotFound,
		"127.0.0.1:1/some/image:1":               fault.Unavailable,
		"no-such-host.invalid/x:1":               fault.Unavailable,
		silent.Addr().String() + "/some/image:1": fault.Timeout,
		"Not A Reference":                        fault.Invalid,
	} {
		limit := time.Minute
		if want == fault.Timeout { // the registry never answers
			limit = 5 * time.Second
		}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		err := e.PullImage(ctx, ref, func(catalog.BuildEvent) {})
		cancel()
		if !fault.Is(err, want) || strings.Contains(fault.Message(err), "daemon") {
			t.Errorf("%s: got %v (%v), want %v", ref, err, fault.KindOf(err), want)
		}
	}
}
