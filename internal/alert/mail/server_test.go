package mail

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

const (
	user     = "ada"
	password = "correct horse"
)

// server is a mail server with what it took.
type server struct {
	address string
	cas     *x509.CertPool // that trust it

	way  string // of signing in: "PLAIN" (or ""), "LOGIN"
	must bool   // sign in before anything else
	mail error  // answers to MAIL and DATA
	data error

	mu    sync.Mutex
	rcpt  error // answer to RCPT
	taken []letter
}

// letter is a mail that a server took.
type letter struct {
	from, to, user string
	encrypted      bool
	text           []byte
}

func (s *server) letters() []letter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken
}

// serve runs a mail server for the time of a test.
func (s *server) serve(t *testing.T, security Security) *server {
	t.Helper()
	source := httptest.NewTLSServer(http.NotFoundHandler())
	source.Close() // it is only for the certificate
	s.cas = x509.NewCertPool()
	s.cas.AddCert(source.Certificate())
	protect := &tls.Config{Certificates: source.TLS.Certificates}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = l.Addr().String()
	serving := smtp.NewServer(s)
	serving.Domain, serving.AllowInsecureAuth, serving.EnableSMTPUTF8 = "mail.example.com", security == None, true
	serving.ErrorLog = log.New(io.Discard, "", 0)
	switch security {
	case STARTTLS:
		serving.TLSConfig = protect
	case Implicit:
		l = tls.NewListener(l, protect)
	}
	ended := make(chan error, 1)
	go func() { ended <- serving.Serve(l) }()
	t.Cleanup(func() {
		_, _ = serving.Close(), l.Close() // the first closes l too, but not when Serve has not begun
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

// NewSession implements smtp.Backend.
func (s *server) NewSession(c *smtp.Conn) (smtp.Session, error) {
	return &session{server: s, conn: c}, nil
}

type session struct {
	server *server
	conn   *smtp.Conn
	letter letter
}

func (s *session) Reset()        {}
func (s *session) Logout() error { return nil }

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if s.server.must && s.letter.user == "" {
		return &smtp.SMTPError{Code: 530, EnhancedCode: smtp.EnhancedCode{5, 7, 0}, Message: "Authentication required"}
	}
	s.letter.from = from
	_, s.letter.encrypted = s.conn.TLSConnectionState()
	return s.server.mail
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.letter.to = to
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	return s.server.rcpt
}

func (s *session) Data(r io.Reader) (err error) {
	if s.letter.text, err = io.ReadAll(r); err != nil {
		return err
	}
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if s.server.data == nil {
		s.server.taken = append(s.server.taken, s.letter)
	}
	return s.server.data
}

func (s *session) AuthMechanisms() []string { return []string{cmp.Or(s.server.way, sasl.Plain)} }

func (s *session) Auth(mech string) (sasl.Server, error) {
	check := func(name, secret string) error {
		if name != user || secret != password {
			return smtp.ErrAuthFailed
		}
		s.letter.user = name
		return nil
	}
	if mech == sasl.Login {
		return &login{check: check}, nil
	}
	return sasl.NewPlainServer(func(_, name, secret string) error { return check(name, secret) }), nil
}

// login is the server's side of LOGIN.
type login struct {
	check func(name, secret string) error
	said  [][]byte
}

func (l *login) Next(said []byte) (challenge []byte, done bool, err error) {
	if said != nil {
		l.said = append(l.said, bytes.Clone(said))
	}
	switch len(l.said) {
	case 0:
		return []byte("Username:"), false, nil
	case 1:
		return []byte("Password:"), false, nil
	}
	return nil, true, l.check(string(l.said[0]), string(l.said[1]))
}
