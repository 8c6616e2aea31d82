package web

import (
	"net/http"
	"strings"
	"testing"

	"sandboxd/internal/chat"
)

// TestChat_PicturesAreReadWhenTheyAreSent sends files of the sandbox: what is a picture is in the message as it was then.
func TestChat_PicturesAreReadWhenTheyAreSent(t *testing.T) {
	w := newWorld(t)
	path, id := w.talk()
	const png = "\x89PNG\r\n\x1a\n"
	for name, content := range map[string]string{"a.png": png + "one", "lies.png": "<html>", "huge.png": png + strings.Repeat("x", chat.MaxImage-5), "b.png": png + "two", "c.txt": "text"} {
		w.files.files["/home/agent/"+name] = content
	}
	var files []string
	for _, name := range []string{"a.png", "lies.png", "none.png", "huge.png", "b.png", "c.txt"} {
		kind := "image/png"
		if name == "c.txt" {
			kind = "text/plain"
		}
		files = append(files, `{"name":"`+name+`","type":"`+kind+`","path":"`+name+`"}`)
	}
	w.call("ada", "POST", path+"/messages", `{"text":"see","files":[`+strings.Join(files, ",")+`]}`).is(http.StatusAccepted)
	w.becomes(id, chat.Idle, 1)
	w.files.files["/home/agent/a.png"] = png + "changed"
	got := w.call("ada", "GET", path, "").is(http.StatusOK).Body.String()
	for name, data := range map[string]string{"a.png": "iVBORw0KGgpvbmU=", "lies.png": "", "none.png": "", "huge.png": "", "b.png": "iVBORw0KGgp0d28=", "c.txt": ""} {
		_, after, _ := strings.Cut(got, `"name":"`+name+`"`)
		one, _, found := strings.Cut(after, "}")
		if strings.Contains(one, `"data"`) != (data != "") || !strings.Contains(one, data) || !found {
			t.Errorf("%s is %.200s", name, one)
		}
	}
	w.call("ada", "POST", path+"/messages", `{"text":"see","files":[{"name":"x","type":"image/svg+xml","data":"PHN2Zz4="}]}`).problem(http.StatusBadRequest, "invalid", "files")
}
