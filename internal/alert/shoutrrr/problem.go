package shoutrrr

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/nicholas-fedor/shoutrrr/pkg/util/jsonclient"

	"sandboxd/internal/fault"
)

func failed(service string) error {
	return fault.New(fault.Unavailable, "%s did not take the message. Check the address and what it allows.", service)
}

// problem words the library's error without what it says.
func problem(service string, err error) error {
	var status jsonclient.Error
	var certificate *tls.CertificateVerificationError
	var name *net.DNSError
	var slow net.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &status) && status.StatusCode >= 400:
		return refusal(service, status.StatusCode)
	case errors.As(err, &certificate):
		return fault.New(fault.Unavailable, "The certificate of the server for %s is not trusted.", service)
	case errors.As(err, &name) && name.IsNotFound:
		return fault.New(fault.Unavailable, "The server for %s cannot be found: there is no such name.", service)
	case errors.As(err, &slow) && slow.Timeout():
		return fault.New(fault.Timeout, "%s did not answer in time.", service)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fault.New(fault.Unavailable, "The server for %s refuses connections.", service)
	}
	return failed(service)
}

// refusal says what a status means for the message.
func refusal(service string, status int) error {
	kind := fault.Unavailable
	if status < 500 && status != http.StatusRequestTimeout && status != http.StatusTooManyRequests {
		kind = fault.Invalid
	}
	return fault.New(kind, "%s answers %s. Check the address and what it allows.", service, strings.TrimSpace(fmt.Sprint(status, " ", http.StatusText(status))))
}

func late(ctx context.Context, service string) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return fault.New(fault.Unavailable, "It is not known whether %s took the message: sending was interrupted.", service)
	}
	return fault.New(fault.Timeout, "%s did not answer in time.", service)
}

func tooLong(service string) error {
	return fault.New(fault.Unavailable, "The answer of %s is too long.", service)
}

// broken is for a child that did not do its work.
func broken(err error, service string) error {
	return fault.Wrap(err, fault.Unavailable, "The process that sends to %s failed. The message is tried again.", service)
}
