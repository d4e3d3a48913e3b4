package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	_ "modernc.org/sqlite"
)

// store is the database of all replicas. SQLite is a file, so these have to run on one machine.
//
// In another database, the tables, the placeholders and the automatic keys are written in
// its own way. The check of the token and the write must still be one transaction. For MySQL,
// go-sql-driver needs clientFoundRows=true. Otherwise an UPDATE that changes nothing counts no row, and
// write takes that for a refusal (read, not tried).
type store struct{ db *sql.DB }

// leader is a replica that writes, with the fencing token of its hold.
type leader struct {
	name  string
	token int64
}

type invoice struct{ id, cents int64 }

// errRefused is the error for a leader that was replaced, and perhaps does not know it yet.
var errRefused = errors.New("the store has refused the write: it has seen a greater token")

// The table leader has one row: the greatest token that the store has seen, and the replica that has sent it.
//
// The table payments is a history. It does not enforce one payment for each invoice: a
// payment that the bank has sent back is made again.
const tables = `
CREATE TABLE IF NOT EXISTS leader (
	id    INTEGER PRIMARY KEY CHECK (id = 1),
	token INTEGER NOT NULL,
	name  TEXT NOT NULL
);
INSERT OR IGNORE INTO leader VALUES (1, 0, 'nobody');
CREATE TABLE IF NOT EXISTS invoices (
	id    INTEGER PRIMARY KEY,
	cents INTEGER NOT NULL,
	paid  INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS unpaid ON invoices (id) WHERE paid = 0;
CREATE TABLE IF NOT EXISTS payments (
	id      INTEGER PRIMARY KEY,
	invoice INTEGER NOT NULL REFERENCES invoices,
	cents   INTEGER NOT NULL,
	token   INTEGER NOT NULL,
	name    TEXT NOT NULL
);`

// A writer waits up to five seconds for other writers. A transaction begins with BEGIN
// IMMEDIATE, so it waits at its beginning. A reader does not wait, and does not block writers.
const settings = "?_pragma=busy_timeout(5000)&_txlock=immediate&_pragma=journal_mode(WAL)"

// openStore opens the database, and creates the tables if they are missing. If two replicas create the
// file at the same moment, one of them may get an error, and has to be started again.
func openStore(ctx context.Context, file string) (*store, error) {
	db, err := sql.Open("sqlite", "file:"+file+settings)
	if err != nil {
		return nil, err
	}
	if _, err := db.ExecContext(ctx, tables); err != nil {
		db.Close()
		return nil, fmt.Errorf("the store %s: %w", file, err)
	}
	return &store{db}, nil
}

func (s *store) close() { s.db.Close() }

// write executes a leader's statements if its token is not smaller than the greatest that the store has
// seen. Both are one transaction, so no other client writes in between.
func (s *store) write(ctx context.Context, by leader, statements func(tx *sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // of no effect after Commit
	result, err := tx.ExecContext(ctx,
		`UPDATE leader SET token = ?, name = ? WHERE token <= ?`, by.token, by.name, by.token)
	if err != nil {
		return err
	}
	changed, err := result.RowsAffected()
	switch {
	case err != nil:
		return err
	case changed == 0:
		return errRefused
	}
	if err := statements(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// takeOver gives the store a new leader's token.
func (s *store) takeOver(ctx context.Context, by leader) error {
	return s.write(ctx, by, func(*sql.Tx) error { return nil })
}

// pay records that a leader has paid an invoice.
func (s *store) pay(ctx context.Context, by leader, i invoice) error {
	return s.write(ctx, by, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx,
			`INSERT INTO payments (invoice, cents, token, name) VALUES (?, ?, ?, ?)`, i.id, i.cents, by.token, by.name)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE invoices SET paid = 1 WHERE id = ?`, i.id)
		return err
	})
}

// unpaid returns the first unpaid invoices.
func (s *store) unpaid(ctx context.Context) (all []invoice, err error) {
	rows, err := s.db.QueryContext(ctx, `SELECT id, cents FROM invoices WHERE paid = 0 ORDER BY id LIMIT 100`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var i invoice
		if err := rows.Scan(&i.id, &i.cents); err != nil {
			return nil, err
		}
		all = append(all, i)
	}
	return all, rows.Err()
}

// enter records an invoice. Each replica may do so at any time. The lock does not protect this, so there is no
// token.
func (s *store) enter(ctx context.Context, cents int64) (id int64, err error) {
	result, err := s.db.ExecContext(ctx, `INSERT INTO invoices (cents) VALUES (?)`, cents)
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}

// lastLeader returns the replica that has sent the greatest token.
func (s *store) lastLeader(ctx context.Context) (name string, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT name FROM leader`).Scan(&name)
	return name, err
}
