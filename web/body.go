package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"reflect"
	"slices"
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
	var object json.RawMessage
	d := json.NewDecoder(r.Body)
	first := d.Decode(&object)
	if errors.Is(first, io.EOF) {
		return nil
	}
	if err := checkJSONType(r.Header.Get("Content-Type")); err != nil {
		return err
	}
	if first != nil {
		return bodyError(first)
	}
	if err := decodeStrictly(object, in); err != nil {
		return bodyError(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return trailing(err)
	}
	return nil
}

// decodeStrictly reads an object into the struct that in points to, and takes its fields' names to the letter, which
// encoding/json does not.
func decodeStrictly(object json.RawMessage, in any) error {
	d := json.NewDecoder(bytes.NewReader(object))
	d.DisallowUnknownFields()
	if err := d.Decode(in); err != nil {
		return err
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(object, &given); err != nil {
		return err
	}
	known := fieldNames(in)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(known, name) {
			return noField(name)
		}
	}
	return nil
}

// fieldNames gives the names in JSON of the fields of the struct that in points to.
func fieldNames(in any) []string {
	var names []string
	for _, f := range reflect.VisibleFields(reflect.TypeOf(in).Elem()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

func noField(name string) error { return fault.Field(name, "There is no field %q here.", name) }

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
	if errors.As(err, &tooLarge) || errors.Is(err, errLate) {
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
		return noField(name)
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
	if errors.Is(err, errLate) {
		return err
	}
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return fault.Wrap(err, fault.TooLarge, "The form is larger than 1 MiB.")
	}
	return fault.Wrap(err, fault.Invalid, "The form could not be read.")
}
