// Package fault gives an error a kind and a sentence for a person.
//
// It knows nothing of HTTP, of the engine or of the database: adapters classify what they understand
// (fault.NotFound for "no such container"), web turns the kind into a status in one place.
//
// Invariant: only the message of a classified error may reach a user. An unclassified error is Internal and
// its text stays in the log.
package fault

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Kind says what sort of failure an error is, and so what a caller can do about it.
type Kind uint8

// The kinds. Internal is the zero value: what nobody classified is our own fault.
const (
	Internal        Kind = iota // our bug or an unexpected failure; details only in the log
	Invalid                     // the input is wrong; the message says what to change
	Unauthenticated             // nobody is signed in, or the credential is not valid any more
	Forbidden                   // signed in, but not allowed
	NotFound                    // no such thing, or none that this user may know of
	Conflict                    // the thing is in a state that does not allow it, or the name is taken
	TooLarge                    // the input or the output is larger than the limit
	Limited                     // too many attempts; wait and try again
	Unavailable                 // something that is needed does not answer now; try again later
	Timeout                     // it took longer than it may
	Gone                        // it was there and has been deleted; it will not come back
)

var kindNames = [...]string{"internal", "invalid", "unauthenticated", "forbidden", "not_found", "conflict",
	"too_large", "rate_limited", "unavailable", "timeout", "gone"}

// String is the kind's stable name, as the API's problem documents carry it in "code".
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return kindNames[Internal]
}

// Error is an error with a kind. Message is a whole sentence that a user may read: what happened, and what to do.
type Error struct {
	Kind    Kind
	Message string
	Field   string // the input field it is about ("name", "limits.memory"), or ""
	Err     error  // the cause, for the log; may be nil

	// Wait is after how long a retry can succeed; 0 when nobody knows.
	Wait time.Duration
}

// Error gives the message and the cause: text for a log, not for a user (use Message for that).
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Message
	}
	return e.Message + ": " + e.Err.Error()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// New makes an error of a kind; the formatted message is shown to users.
func New(kind Kind, format string, args ...any) error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// Wrap classifies err; the formatted message is shown to users, err only to the log. Wrap of nil is nil.
func Wrap(err error, kind Kind, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...), Err: err}
}

// Later is New for what can succeed after wait, and not before.
func Later(kind Kind, wait time.Duration, format string, args ...any) error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...), Wait: wait}
}

// DefaultRetry is how long a client is asked to wait when something is overloaded, full or away and the end is not known.
const DefaultRetry = 5 * time.Second

// RetryAfter gives after how long a retry can succeed, rounded up to whole seconds; 0 when nobody knows.
func RetryAfter(err error) time.Duration {
	var e *Error
	for errors.As(err, &e) && e.Wait <= 0 {
		err = e.Err
	}
	if e == nil || e.Wait <= 0 {
		return 0
	}
	return (e.Wait + time.Second - 1).Truncate(time.Second)
}

// Field makes an Invalid error about one input field.
func Field(field, format string, args ...any) error {
	return &Error{Kind: Invalid, Field: field, Message: fmt.Sprintf(format, args...)}
}

// KindOf gives the kind of the outermost classified error in err's chain. An unclassified deadline is a Timeout;
// everything else unclassified is Internal.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return Timeout
	}
	return Internal
}

// Is reports whether err is of the kind. A nil error is of none.
func Is(err error, kind Kind) bool { return err != nil && KindOf(err) == kind }

// Message gives the sentence that a user may read. An unclassified error gives a general one, so that no internal
// text leaks.
func Message(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Message
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "It took too long and was given up."
	}
	return "Something went wrong inside sandboxd. The log has the details."
}

// FieldOf gives the input field that err is about, or "".
func FieldOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Field
	}
	return ""
}
