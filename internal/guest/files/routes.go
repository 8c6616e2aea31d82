package files

import (
	"io"
	"net/http"
	"net/url"
	"strconv"

	"sandboxd/internal/text"
	"sandboxd/internal/wire"
)

// ask is one request.
type ask struct {
	*http.Request
	tree  *Tree
	reply *reply
	user  User
	v     url.Values
}

// verb is an operation on files. It answers, or gives an error that is answered for it.
type verb func(*ask) error

// verbs is everything that sandboxd can ask; those with true have their parameters in the body.
var verbs = map[string]struct {
	serve verb
	form  bool
}{
	wire.FilesStat:    {(*ask).stat, false},
	wire.FilesList:    {(*ask).list, false},
	wire.FilesRead:    {(*ask).read, false},
	wire.FilesWrite:   {(*ask).write, false},
	wire.FilesUpload:  {(*ask).upload, false},
	wire.FilesAbandon: {(*ask).abandon, false},
	wire.FilesMkdir:   {(*ask).mkdir, false},
	wire.FilesMove:    {(*ask).move, true},
	wire.FilesCopy:    {(*ask).copy, true},
	wire.FilesDelete:  {(*ask).remove, true},
	wire.FilesTrash:   {(*ask).trash, true},
	wire.FilesRestore: {(*ask).restore, true},
	wire.FilesEmpty:   {(*ask).empty, true},
	wire.FilesChmod:   {(*ask).chmod, false},
	wire.FilesPack:    {(*ask).pack, true},
	wire.FilesUnpack:  {(*ask).unpack, false},
	wire.FilesSearch:  {(*ask).search, true},
	wire.FilesWatch:   {(*ask).watch, true},
}

// ServeHTTP serves a POST to wire.PathFiles and a verb.
func (t *Tree) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v, known := verbs[r.PathValue("verb")]
	if !known {
		http.NotFound(w, r) // sandboxd is newer than we are
		return
	}
	q := &ask{Request: r, tree: t, reply: newReply(w), user: t.cfg.User()}
	defer q.reply.quit()
	var err error
	if q.v, err = q.parameters(v.form); err == nil {
		err = v.serve(q)
	}
	if err != nil {
		q.reply.fail(err)
	}
}

func (q *ask) parameters(form bool) (url.Values, error) {
	text := q.URL.RawQuery
	if form {
		b, err := io.ReadAll(io.LimitReader(q.Body, wire.MaxFileForm+1))
		if err != nil {
			return nil, err
		}
		if len(b) > wire.MaxFileForm {
			return nil, problem(wire.CodeInvalid, "That is too much at once.")
		}
		text = string(b)
	}
	v, err := url.ParseQuery(text)
	if err != nil {
		return nil, problem(wire.CodeInvalid, "The question cannot be read.")
	}
	return v, nil
}

// path gives the path that a parameter names, absolute and clean.
func (q *ask) path(name string) (string, error) { return q.clean(q.v.Get(name)) }

func (q *ask) clean(path string) (string, error) {
	p, err := wire.CleanPath(q.user.Home, path)
	if err != nil {
		return "", problem(wire.CodeInvalid, "That is no path in a sandbox: %v.", err)
	}
	return p, nil
}

// paths gives those that a parameter names, at least one.
func (q *ask) paths(name string) ([]string, error) {
	list := q.v[name]
	if len(list) == 0 || len(list) > wire.MaxFilePaths {
		return nil, problem(wire.CodeInvalid, "There must be between 1 and %d paths.", wire.MaxFilePaths)
	}
	clean := make([]string, len(list))
	for i, p := range list {
		var err error
		if clean[i], err = q.clean(p); err != nil {
			return nil, err
		}
	}
	return clean, nil
}

func (q *ask) flag(name string) bool { return q.v.Get(name) == "true" }

func (q *ask) number(name string, base int) (int64, error) {
	n, err := strconv.ParseInt(q.v.Get(name), base, 64)
	if err != nil {
		return 0, problem(wire.CodeInvalid, "%s is no number.", text.OneLine(name, 20))
	}
	return n, nil
}

// brief does something that is over soon and answers nothing.
func (q *ask) brief(path string, f func(*actor) error) error {
	if err := q.tree.act(q.Context(), f); err != nil {
		return about(path, err)
	}
	q.reply.end(nil)
	return nil
}

// actLong runs long work and answers without a body.
func (q *ask) actLong(f func(*actor) error) error {
	if err := q.tree.actLong(q.Context(), f); err != nil {
		return about("the request", err)
	}
	q.reply.end(nil)
	return nil
}
