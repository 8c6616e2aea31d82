package web

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
)

const (
	templatesURL = "/api/v1/templates"
	mineFiles    = `{"files":{"template.yaml":"name: mine\ntitle: Mine\ndescription: Words.\n","Dockerfile":"FROM scratch\n","files/run":"#!/bin/sh\n"}}`
)

func TestOwnTemplates_AreMadeChangedAndDeleted(t *testing.T) {
	w := newWorld(t)
	first := w.call("root", "PUT", templatesURL+"/mine", mineFiles, "If-None-Match", "*").is(http.StatusCreated)
	golden(t, "template_files", first.Body.Bytes())
	w.call("root", "PUT", templatesURL+"/mine", mineFiles, "If-None-Match", "*").problem(412, "precondition_failed", "")
	etag := first.Header().Get("ETag")
	changed := strings.Replace(mineFiles, `"#!/bin/sh\n"`, "null", 1)
	changed = strings.Replace(changed, "FROM scratch", "FROM scratch\\nRUN true", 1)
	w.call("root", "PUT", templatesURL+"/mine", changed, "If-Match", etag).is(http.StatusOK)
	w.call("root", "PUT", templatesURL+"/mine", changed, "If-Match", etag).problem(412, "precondition_failed", "")
	got := w.call("root", "GET", templatesURL+"/mine/files", "").is(http.StatusOK)
	if text := got.Body.String(); !strings.Contains(text, "RUN true") || !strings.Contains(text, "#!/bin/sh") || got.Header().Get("ETag") == etag {
		t.Errorf("files are %s", text)
	}
	w.call("ada", "GET", templatesURL+"/mine", "").is(http.StatusOK)
	w.images.users = []string{"lab"}
	w.call("root", "DELETE", templatesURL+"/mine", "").problem(409, "conflict", "")
	w.images.users = nil
	w.call("root", "DELETE", templatesURL+"/mine", "").is(http.StatusNoContent)
	w.call("root", "DELETE", templatesURL+"/mine", "").problem(404, "not_found", "")
	w.call("root", "DELETE", templatesURL+"/base", "").problem(404, "not_found", "")
}

func TestOwnTemplates_WhatIsBrokenIsRefusedWithItsPlace(t *testing.T) {
	w := newWorld(t)
	broken := strings.Replace(mineFiles, "title:", "titel:", 1)
	got := w.call("root", "PUT", templatesURL+"/mine", broken).problem(400, "invalid", "files")
	if !strings.HasPrefix(got.Detail, "template.yaml:2: ") {
		t.Errorf("it says %q", got.Detail)
	}
	var checked checkedShape
	text := w.call("root", "POST", templatesURL+"/check", strings.Replace(broken, "{", `{"name":"mine",`, 1)).is(http.StatusOK).Body.Bytes()
	if err := json.Unmarshal(text, &checked); err != nil || len(checked.Problems) != 1 || checked.Problems[0].Line != 2 {
		t.Errorf("checked is %s, %v", text, err)
	}
	w.call("root", "POST", templatesURL+"/check", strings.Replace(mineFiles, "{", `{"name":"Mine",`, 1)).problem(400, "invalid", "name")
	w.call("root", "PUT", templatesURL+"/mine", `{"from":"base","files":{"x":"y"}}`).problem(400, "invalid", "from")
	w.call("root", "PUT", templatesURL+"/copy", `{"from":"base"}`).is(http.StatusCreated)
	w.call("root", "PUT", templatesURL+"/copy", `{"from":"base"}`).problem(409, "conflict", "name")
}

func TestOwnTemplates_AreForAdmins(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct{ method, path, body string }{
		{"PUT", "/mine", mineFiles}, {"DELETE", "/mine", ""}, {"GET", "/base/files", ""}, {"POST", "/check", `{"name":"x","files":{}}`}, {"GET", "/base/source", ""},
		{"PUT", "/rust/source", `{"url":"https://h/t"}`}, {"GET", "/base/rebuild", ""}, {"PUT", "/base/rebuild", `{"cron":"@daily"}`},
	} {
		w.call("ada", c.method, templatesURL+c.path, c.body).problem(403, "forbidden", "")
	}
}

func TestTemplateSource_IsFetchedAndItsSecretIsNeverTold(t *testing.T) {
	const token = "glpat-s3cret"
	w := newWorld(t)
	body := `{"url":"https://git.example.com/t.git","ref":"main","path":"rust","token":"` + token + `"}`
	made := w.call("root", "PUT", templatesURL+"/rust/source", body).is(http.StatusCreated)
	golden(t, "template_source", made.Body.Bytes())
	for _, path := range []string{"/rust/source", "/rust/files", "/rust"} {
		if text := w.call("root", "GET", templatesURL+path, "").is(http.StatusOK).Body.String(); strings.Contains(text, token) {
			t.Errorf("%s tells the token: %s", path, text)
		}
	}
	w.call("root", "PUT", templatesURL+"/rust/source", `{"url":"file:///srv/t.git"}`).problem(400, "invalid", "url")
	w.call("root", "PUT", templatesURL+"/rust", mineFiles).problem(409, "conflict", "name")
	w.images.git.err = fault.New(fault.Unavailable, "The server is away.")
	w.call("root", "PUT", templatesURL+"/go/source", `{"url":"https://git.example.com/t.git"}`).problem(503, "unavailable", "")
	w.call("root", "GET", templatesURL+"/go/source", "").problem(404, "not_found", "")
	if text := w.log.String(); strings.Contains(text, token) {
		t.Error("the log has the token")
	}
}

func TestRebuildPlan_IsSetAndTakenBack(t *testing.T) {
	w := newWorld(t)
	w.call("root", "PUT", templatesURL+"/base/rebuild", `{"cron":"0 4 * * 1","zone":"Europe/Berlin","no_cache":true}`).is(http.StatusOK)
	golden(t, "rebuild_plan", w.call("root", "GET", templatesURL+"/base/rebuild", "").is(http.StatusOK).Body.Bytes())
	w.call("root", "PUT", templatesURL+"/base/rebuild", `{"cron":"* * * * *"}`).problem(400, "invalid", "cron")
	w.call("root", "PUT", templatesURL+"/base/rebuild", `{"cron":""}`).is(http.StatusOK)
	w.call("root", "PUT", templatesURL+"/nope/rebuild", `{"cron":"@daily"}`).problem(404, "not_found", "")
}

func TestBuilds_AreListedWithTheirLogs(t *testing.T) {
	w := newWorld(t)
	own := w.server.cfg.OwnTemplates
	r := catalog.Record{Template: "base", Ref: "sandboxd/base:1", Order: catalog.Order{Why: catalog.WhyAsked, By: "root"}, Began: w.server.cfg.Now()}
	id := own.Begun(r)
	r.Ended, r.Problem, r.Log = w.server.cfg.Now(), "Step 2 failed.\nmore", []string{"one", "two"}
	own.Ended(id, r)
	golden(t, "builds", w.call("ada", "GET", templatesURL+"/base/builds", "").is(http.StatusOK).Body.Bytes())
	golden(t, "build_record", w.call("ada", "GET", templatesURL+"/base/builds/1", "").is(http.StatusOK).Body.Bytes())
	w.call("ada", "GET", templatesURL+"/base/builds/2", "").problem(404, "not_found", "")
	w.call("ada", "GET", templatesURL+"/base/builds/x", "").is(http.StatusNotFound)
}

func TestTemplatePages_OfAdminsMakeAndChange(t *testing.T) {
	s := newStage(t)
	post := func(path, body string) view {
		t.Helper()
		fields, err := url.ParseQuery(body)
		if err != nil {
			t.Fatal(err)
		}
		return s.post("root", path, fields)
	}
	says := func(v view, text string) {
		t.Helper()
		if !strings.Contains(v.Body.String(), text) {
			t.Errorf("the page does not say %q", text)
		}
	}
	post("/templates", "name=mine&from=base").leads("/templates/mine/edit")
	says(post("/templates", "name=mine&from=base").is(http.StatusConflict), "of your own already")
	says(post("/templates", "name=Bad+Name&from=").is(http.StatusBadRequest), "is not a valid name")
	says(s.get("root", "/templates/new?from=base").is(http.StatusOK), "my-base")
	says(s.get("root", "/templates/mine/edit").is(http.StatusOK), "template-editor")
	post("/templates/new/git", "name=rust&url=https%3A%2F%2Fh%2Ft&token=s3cret").leads("/templates/rust")
	got := s.get("root", "/templates/rust").is(http.StatusOK)
	says(got, "Git repository")
	if strings.Contains(got.Body.String(), "s3cret") {
		t.Error("the page has the token")
	}
	if text := s.get("root", "/templates/rust/source").is(http.StatusOK).Body.String(); strings.Contains(text, "s3cret") || !strings.Contains(text, "Leave it empty to keep") {
		t.Error("the form has the token, or does not say that it stays")
	}
	says(post("/templates/new/git", "name=rust2&url=file%3A%2F%2F%2Ft").is(http.StatusBadRequest), "begins with https://")
	post("/templates/mine/rebuild", "every=week&at=04%3A00&weekday=1&zone=UTC&no_cache=on").leads("/templates/mine")
	says(s.get("root", "/templates/mine").is(http.StatusOK), "Rebuilt every week on Monday at 04:00, UTC.")
	says(post("/templates/mine/rebuild", "every=week&at=x&zone=UTC").is(http.StatusBadRequest), "Enter a time")
	post("/templates/mine/delete", "").leads("/templates?done=template-deleted")
	for _, path := range []string{"/templates/new", "/templates/new/git", "/templates/base/edit", "/templates/base/rebuild"} {
		s.get("ada", path).is(http.StatusForbidden)
	}
	if text := s.get("ada", "/templates/rust").is(http.StatusOK).Body.String(); strings.Contains(text, "https://h/t") || strings.Contains(text, "/edit") {
		t.Error("a member sees the repository, or can edit")
	}
}
