package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"sandboxd/internal/template"
)

// Templates implements template.Store.
type Templates struct{ db *DB }

var _ template.Store = (*Templates)(nil)

// Templates gives the store of templates' sources, plans and builds in this database.
func (d *DB) Templates() *Templates { return &Templates{d} }

const buildColumns = `number, template, image, commit_id, why, asked_by, state, problem, began, ended`

// Sources gives all, by template.
func (s *Templates) Sources(ctx context.Context) ([]template.Source, error) {
	const query = `SELECT template, url, ref, path, secret, host_keys, commit_id, dated, fetched, tried, problem FROM template_sources ORDER BY template`
	return listTemplates(ctx, s.db, "sources", query, func(r row) (o template.Source, err error) {
		return o, r.Scan(&o.Template, &o.URL, &o.Ref, &o.Path, &o.Secret, &o.HostKeys, &o.Commit, into{&o.Date, true}, into{&o.Fetched, true}, into{&o.Tried, true}, &o.Problem)
	})
}

// PutSource adds a source, or replaces the one of its template.
func (s *Templates) PutSource(ctx context.Context, o template.Source) error {
	return s.exec(ctx, "keep source of "+o.Template, `INSERT OR REPLACE INTO template_sources (template, url, ref, path, secret, host_keys, commit_id, dated, fetched, tried, problem)
		VALUES (?,?,?,?,?,?,?,?,?,?,?)`, o.Template, o.URL, o.Ref, o.Path, o.Secret, o.HostKeys, o.Commit, stampOrNull(o.Date), stampOrNull(o.Fetched), stampOrNull(o.Tried), o.Problem)
}

// DeleteSource deletes that of a template; none is no error.
func (s *Templates) DeleteSource(ctx context.Context, name string) error {
	return s.exec(ctx, "delete source of "+name, `DELETE FROM template_sources WHERE template = ?`, name)
}

// Plans gives all, by template.
func (s *Templates) Plans(ctx context.Context) ([]template.Plan, error) {
	return listTemplates(ctx, s.db, "plans", `SELECT template, cron, zone, no_cache, next FROM template_plans ORDER BY template`, func(r row) (o template.Plan, err error) {
		return o, r.Scan(&o.Template, &o.Cron, &o.Zone, &o.NoCache, into{t: &o.Next})
	})
}

// PutPlan adds a plan, or replaces the one of its template.
func (s *Templates) PutPlan(ctx context.Context, p template.Plan) error {
	return s.exec(ctx, "keep plan of "+p.Template, `INSERT OR REPLACE INTO template_plans (template, cron, zone, no_cache, next) VALUES (?,?,?,?,?)`,
		p.Template, p.Cron, p.Zone, p.NoCache, stamp(p.Next))
}

// DeletePlan deletes that of a template; none is no error.
func (s *Templates) DeletePlan(ctx context.Context, name string) error {
	return s.exec(ctx, "delete plan of "+name, `DELETE FROM template_plans WHERE template = ?`, name)
}

// Begin adds a build and gives its id. Of too many of a template it deletes the oldest.
func (s *Templates) Begin(ctx context.Context, b template.Build) (id int64, err error) {
	err = s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		done, err := tx.ExecContext(ctx, `INSERT INTO template_builds (template, image, commit_id, why, asked_by, state, problem, began, ended, log) VALUES (?,?,?,?,?,?,?,?,?,?)`,
			b.Template, b.Ref, b.Commit, b.Why, b.By, string(b.State), b.Problem, stamp(b.Began), stampOrNull(b.Ended), b.Log)
		if err != nil {
			return err
		}
		if id, err = done.LastInsertId(); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM template_builds WHERE template = ?1 AND number NOT IN
			(SELECT number FROM template_builds WHERE template = ?1 ORDER BY number DESC LIMIT ?2)`, b.Template, template.KeptBuilds)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("begin build of %s: %w", b.Template, err)
	}
	return id, nil
}

// End keeps how a build has ended. One that is gone stays so.
func (s *Templates) End(ctx context.Context, b template.Build) error {
	return s.exec(ctx, "end build of "+b.Template, `UPDATE template_builds SET (state, problem, ended, log) = (?,?,?,?) WHERE number = ?`,
		string(b.State), b.Problem, stampOrNull(b.Ended), b.Log, b.ID)
}

// Builds gives the newest builds of a template without their logs, the newest first.
func (s *Templates) Builds(ctx context.Context, name string) ([]template.Build, error) {
	return listTemplates(ctx, s.db, "builds of "+name, `SELECT `+buildColumns+`, '' FROM template_builds WHERE template = ? ORDER BY number DESC`, scanBuild, name)
}

// Build gives one with its log. NotFound if there is none of that id and template.
func (s *Templates) Build(ctx context.Context, name string, id int64) (b template.Build, err error) {
	err = s.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		b, err = scanBuild(tx.QueryRowContext(ctx, `SELECT `+buildColumns+`, log FROM template_builds WHERE number = ? AND template = ?`, id, name))
		if errors.Is(err, sql.ErrNoRows) {
			return template.NoBuild(name, id)
		}
		return err
	})
	if err != nil {
		return b, fmt.Errorf("read build %d of %s: %w", id, name, err)
	}
	return b, nil
}

// Cut marks the builds as cut off that have no end.
func (s *Templates) Cut(ctx context.Context, at time.Time) error {
	return s.exec(ctx, "mark builds as cut off", `UPDATE template_builds SET state = ?, ended = ? WHERE ended IS NULL`, string(template.CutOff), stamp(at))
}

// DeleteBuilds deletes those of a template.
func (s *Templates) DeleteBuilds(ctx context.Context, name string) error {
	return s.exec(ctx, "delete builds of "+name, `DELETE FROM template_builds WHERE template = ?`, name)
}

func scanBuild(r row) (o template.Build, err error) {
	return o, r.Scan(&o.ID, &o.Template, &o.Ref, &o.Commit, &o.Why, &o.By, &o.State, &o.Problem, into{t: &o.Began}, into{&o.Ended, true}, &o.Log)
}

func (s *Templates) exec(ctx context.Context, what, query string, values ...any) error {
	err := s.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, query, values...)
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func listTemplates[T any](ctx context.Context, db *DB, what, query string, scan func(row) (T, error), values ...any) (list []T, err error) {
	err = db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, query, values...)
		if err != nil {
			return err
		}
		list, err = collect(rows, scan)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", what, err)
	}
	return list, nil
}
