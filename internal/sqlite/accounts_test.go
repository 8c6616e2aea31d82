package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"sandboxd/internal/auth"
)

func TestAccounts_BadRowIsAnError(t *testing.T) {
	d := fresh(t)
	if err := d.Auth().InsertUser(t.Context(), account("ada", auth.Admin, 0)); err != nil {
		t.Fatal(err)
	}
	for _, refused := range []string{
		`UPDATE users SET created = 'yesterday'`,
		`UPDATE users SET created = NULL`,
		`UPDATE users SET role = 'god'`,
		`UPDATE users SET disabled = 2`,
		`INSERT INTO tokens (id, key, user, name, sandbox, prefix, created) VALUES ('t', x'00', 'id-ada', '', '', '', 1)`,
	} {
		err := d.write(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, refused)
			return err
		})
		if err == nil {
			t.Errorf("%s was taken", refused)
		}
	}
	if _, err := d.writer.ExecContext(t.Context(), `UPDATE users SET created = -5`); err != nil {
		t.Fatal(err)
	}
	if a, err := d.Auth().User(t.Context(), "id-ada"); err == nil {
		t.Errorf("a bad time comes back as %s", a.Created)
	}
}

// A token revoked by the command line must be refused by the server at its very next question.
func TestAccounts_AnotherHandleSeesChangesAtOnce(t *testing.T) {
	path := t.TempDir() + "/sandboxd.db"
	server, cli := open(t, path).Auth(), open(t, path).Auth()
	if err := server.InsertUser(t.Context(), account("ada", auth.Admin, 0)); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		key := randomKey()
		if err := cli.InsertToken(t.Context(), key, auth.Token{ID: "t", User: "id-ada", Created: time.Now()}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := server.TokenByKey(t.Context(), key); err != nil {
			t.Fatalf("the server does not know a new token: %v", err)
		}
		if err := cli.DeleteToken(t.Context(), "", "t"); err != nil {
			t.Fatal(err)
		}
		if _, _, err := server.TokenByKey(t.Context(), key); err == nil {
			t.Fatal("the server takes a revoked token")
		}
	}
}

func randomKey() (k auth.Key) {
	rand.Read(k[:])
	return k
}

// BenchmarkTokenByKey is what every API request pays to know who asks.
func BenchmarkTokenByKey(b *testing.B) {
	s := fresh(b).Auth()
	if err := s.InsertUser(b.Context(), account("ada", auth.Admin, 0)); err != nil {
		b.Fatal(err)
	}
	var key auth.Key
	for i := range 200 {
		key = randomKey()
		if err := s.InsertToken(b.Context(), key, auth.Token{ID: fmt.Sprint(i), User: "id-ada", Created: time.Now()}); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	for b.Loop() {
		if _, _, err := s.TokenByKey(b.Context(), key); err != nil {
			b.Fatal(err)
		}
	}
}
