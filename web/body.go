package web

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"sandboxd/internal/fault"
)

// maxBody bounds what a request may carry: a create or a command is a few kilobytes.
const maxBody = 1 << 20

// readJSON reads the one JSON object of the body into in, and says exactly what is wrong with it. An empty body is an
// empty object.
func readJSON(r *http.Request, in any) error {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	first := d.Decode(in)
	if errors.Is(first, io.EOF) {
		return nil
	}
	if err := checkJSONType(r.Header.Get("Content-Type")); err != nil {
		return err
	}
	if first != nil {
		return bodyError(first)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return trailing(err)
	}
	return nil
}

func checkJSONType(header string) error {
	if header == "" {
		return nil
	}
	kind, _, err := mime.ParseMediaType(header)
	if err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json")) {
		return nil
	}
	return &statusError{http.StatusUnsupportedMediaType, "unsupported_media_type",
		"The body must be JSON: send it with the header Content-Type: application/json."}
}

func trailing(err error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return bodyError(err)
	}
	return fault.New(fault.Invalid, "The body must be one JSON object with nothing after it.")
}

// bodyError turns what the decoder says into a sentence for the caller.
func bodyError(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	var tooLarge *http.MaxBytesError
	var own *fault.Error
	switch {
	case errors.As(err, &own):
		return err
	case errors.As(err, &tooLarge):
		return fault.Wrap(err, fault.TooLarge, "The body is larger than 1 MiB.")
	case errors.As(err, &kind) && kind.Field != "":
		return fault.Field(kind.Field, "%s must be %s, not %s.", kind.Field, jsonKind(kind), kind.Value)
	case errors.As(err, &kind):
		return fault.Wrap(err, fault.Invalid, "The body must be a JSON object, not %s.", kind.Value)
	case errors.As(err, &syntax), errors.Is(err, io.ErrUnexpectedEOF):
		return fault.Wrap(err, fault.Invalid, "The body is not valid JSON.")
	}
	if name, ok := unknownField(err); ok {
		return fault.Field(name, "There is no field %q here.", name)
	}
	return fault.Wrap(err, fault.Invalid, "The body could not be read.")
}

// unknownField takes the name out of the one decoder error that has no type of its own.
func unknownField(err error) (string, bool) {
	name, ok := strings.CutPrefix(err.Error(), `json: unknown field "`)
	return strings.TrimSuffix(name, `"`), ok
}

func jsonKind(err *json.UnmarshalTypeError) string {
	switch err.Type.Kind().String() {
	case "string":
		return "a string"
	case "bool":
		return "true or false"
	case "slice":
		return "a list"
	case "map", "struct":
		return "an object"
	}
	return "a number"
}

// parseForm reads a posted form strictly.
func parseForm(r *http.Request) error {
	err := r.ParseForm()
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return fault.Wrap(err, fault.TooLarge, "The form is larger than 1 MiB.")
	}
	return fault.Wrap(err, fault.Invalid, "The form could not be read.")
}
