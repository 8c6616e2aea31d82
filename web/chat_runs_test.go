package web

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"sandboxd/internal/chat"
)

// hasRun waits until the last item of a conversation is a run that has ended, in this way.
func (w *world) hasRun(id, status string) {
	w.t.Helper()
	seen := errors.New("seen")
	err := w.server.cfg.Chat.Follow(w.t.Context(), id, 0, func(c chat.Change) error {
		for _, it := range c.Items {
			if it.Kind == chat.RunItem && !it.Open && strings.Contains(string(it.Data), `"status":"`+status+`"`) {
				return seen
			}
		}
		return nil
	})
	if err != seen {
		w.t.Fatal(err)
	}
}

func TestChat_CodeIsRunAndStopped(t *testing.T) {
	w := newWorld(t)
	path, id := w.talk()
	w.call("ada", "POST", path+"/messages", `{"text":"explain\n~~~sh\necho 1\n~~~\n~~~sh\nwait\n~~~"}`).is(http.StatusAccepted)
	w.becomes(id, chat.Idle, 1)
	var begun, again chatItemShape
	w.call("ada", "POST", path+"/runs", `{"id":"r1","item":1,"block":0}`).is(http.StatusAccepted).into(&begun)
	w.hasRun(id, "ok")
	w.call("ada", "POST", path+"/runs", `{"id":"r1","item":1,"block":0}`).is(http.StatusAccepted).into(&again)
	if begun.Kind != "run" || !begun.Open || again.N != begun.N || again.Open || again.Output != "echo 1" {
		t.Errorf("begun as %+v, then %+v", begun, again)
	}
	w.call("ada", "POST", path+"/runs", `{"id":"r2","item":1,"block":1}`).is(http.StatusAccepted).into(&begun)
	w.call("ada", "POST", path+"/runs/"+strconv.FormatInt(begun.N, 10)+"/cancel", "").is(http.StatusNoContent)
	w.hasRun(id, "cancelled")
	w.call("ada", "POST", path+"/runs/99/cancel", "").is(http.StatusNoContent)
	w.call("ada", "POST", path+"/runs/x/cancel", "").problem(http.StatusNotFound, "not_found", "")
	w.call("ada", "POST", path+"/runs", `{"id":"r3","item":1,"block":7}`).problem(http.StatusBadRequest, "invalid", "block")
	w.call("ada", "POST", path+"/runs", `{"id":"r3","item":9}`).problem(http.StatusBadRequest, "invalid", "item")
	w.call("ada", "POST", path+"/runs", `{"item":1}`).problem(http.StatusBadRequest, "invalid", "id")
	w.call("ada", "POST", path+"/runs", `{"id":"r3","item":1,"code":"echo evil"}`).problem(http.StatusConflict, "conflict", "")
	w.call("bob", "POST", path+"/runs", `{"id":"r3","item":1}`).is(http.StatusNotFound)
}
