package guest

import (
	"io"
	"net/http"
	"strconv"

	"sandboxd/internal/wire"
)

// routes adds what sandboxd can ask about kept processes.
func (k *keeper) routes(mux *http.ServeMux) {
	mux.HandleFunc("GET "+wire.PathKept, func(w http.ResponseWriter, _ *http.Request) {
		l := k.list()
		answer(w, &l)
	})
	mux.HandleFunc("POST "+wire.PathKept, k.serveStart)
	mux.HandleFunc("DELETE "+wire.PathKept+"/{id}", func(w http.ResponseWriter, r *http.Request) {
		k.end(r.PathValue("id"))
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET "+wire.PathKept+"/{id}/output", k.on(serveKeptOutput))
	mux.HandleFunc("POST "+wire.PathKept+"/{id}/input", k.on(serveKeptInput))
	mux.HandleFunc("POST "+wire.PathKept+"/{id}/forget", k.on(serveKeptForget))
	mux.HandleFunc("GET "+wire.PathKept+"/{id}/stderr", k.on(func(w http.ResponseWriter, _ *http.Request, o *keptProcess) error {
		w.Write(o.stderr.bytes())
		return nil
	}))
	mux.HandleFunc("POST "+wire.PathKept+"/{id}/signal", k.on(func(w http.ResponseWriter, r *http.Request, o *keptProcess) error {
		if err := serveSignal(r, o.process); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	}))
}

func (k *keeper) serveStart(w http.ResponseWriter, r *http.Request) {
	var start wire.KeptStart
	err := wire.Decode(r.Body, wire.MaxStart, &start)
	if err != nil {
		err = problem(wire.CodeInvalid, "The program cannot be run: "+err.Error()+".")
	} else {
		err = k.begin(start)
	}
	if err != nil {
		fail(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// on serves a request about one kept process. An error comes before anything else is answered.
func (k *keeper) on(serve func(w http.ResponseWriter, r *http.Request, o *keptProcess) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		o, err := k.find(r.PathValue("id"))
		if err == nil {
			err = serve(w, r, o)
		}
		if err != nil {
			fail(w, err)
		}
	}
}

// offset reads an offset of a request.
func offset(r *http.Request, name string) (int64, error) {
	n, err := strconv.ParseInt(r.URL.Query().Get(name), 10, 64)
	if err != nil || wire.CheckOffset(n) != nil {
		return 0, problem(wire.CodeInvalid, "That is no offset.")
	}
	return n, nil
}

func serveKeptInput(w http.ResponseWriter, r *http.Request, o *keptProcess) error {
	at, err := offset(r, "at")
	if err != nil {
		return err
	}
	p, err := io.ReadAll(io.LimitReader(r.Body, wire.MaxKeptInput+1))
	if err != nil || len(p) > wire.MaxKeptInput {
		return problem(wire.CodeInvalid, "The input cannot be read.")
	}
	next, err := o.input.write(r.Context(), at, p, r.URL.Query().Get("end") == "1")
	if err != nil {
		return err
	}
	answer(w, &wire.KeptInput{Next: next})
	return nil
}

func serveKeptForget(w http.ResponseWriter, r *http.Request, o *keptProcess) error {
	before, err := offset(r, "before")
	if err != nil {
		return err
	}
	if !o.output.forget(before) {
		return problem(wire.CodeInvalid, "The program has not written that much.")
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func serveKeptOutput(w http.ResponseWriter, r *http.Request, o *keptProcess) error {
	at, err := offset(r, "at")
	if err != nil {
		return err
	}
	first, last := o.output.bounds()
	if at > last {
		return problem(wire.CodeInvalid, "The program has not written that much.")
	}
	if at < first {
		return problem(wire.CodeConflict, "That part of the program's output is forgotten.")
	}
	replaced := o.read()
	w.WriteHeader(http.StatusOK)
	http.NewResponseController(w).Flush()
	o.passOn(w, r, at, replaced)
	return nil
}

// passOn sends the output from an offset on, as it comes, and how the program has ended. It resets the stream when that cannot be.
func (o *keptProcess) passOn(w http.ResponseWriter, r *http.Request, at int64, replaced <-chan struct{}) {
	for {
		complete := isClosed(o.over) // before the look at what there is
		news := o.output.beyond(at)
		n, err := o.passPiece(w, at)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		at += int64(n)
		if n > 0 {
			continue
		}
		if complete {
			w.Write(wire.AppendExit(nil, o.how.code, o.how.signal)) // how is settled
			return
		}
		select {
		case <-news:
		case <-o.over:
		case <-replaced:
			panic(http.ErrAbortHandler)
		case <-r.Context().Done():
			return
		}
	}
}

// passPiece sends what there is at an offset, in one frame.
func (o *keptProcess) passPiece(w http.ResponseWriter, at int64) (int, error) {
	buf := buffers.Get().(*buffer)
	defer buffers.Put(buf)
	n, err := o.output.readAt(at, buf[wire.FrameHead:])
	if err != nil || n == 0 {
		return 0, err
	}
	wire.PutHead(buf[:], wire.FrameStdout, n)
	if _, err := w.Write(buf[:wire.FrameHead+n]); err != nil {
		return 0, err
	}
	return n, http.NewResponseController(w).Flush()
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
