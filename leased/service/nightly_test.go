package main

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zklock/leased"

	"zklock/internal/zktest"
)

// runOnce runs the job of a night, unless the mark in the store says that it has been run. Each of several
// processes may call it, at any time of that night. ctx has a deadline, the end of the night. It ends the wait
// and the transaction.
func runOnce(
	ctx context.Context, lock *leased.Mutex, db *sql.DB, night string, job func(*sql.Tx) error,
) (err error) {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hold.Unlock()) }()
	tx, err := db.BeginTx(hold.Context(ctx), nil) // rolled back if the lock is lost or ctx ends
	if err != nil {
		return err
	}
	defer tx.Rollback() // has no effect after Commit

	isCurrent, err := changesARow(tx, `UPDATE locks SET token = ? WHERE name = 'nightly' AND token <= ?`,
		hold.Token(), hold.Token())
	if err == nil && !isCurrent {
		err = errors.New("refused: the store has seen a greater token")
	}
	if err != nil {
		return err
	}
	isFirst, err := changesARow(tx, `INSERT INTO nights (night) VALUES (?) ON CONFLICT DO NOTHING`, night)
	if err != nil || !isFirst {
		return err // nil if the job has been run already
	}
	if err := job(tx); err != nil {
		return err // the mark is rolled back: the next caller runs the job
	}
	return tx.Commit()
}

func changesARow(tx *sql.Tx, statement string, args ...any) (bool, error) {
	result, err := tx.Exec(statement, args...)
	if err != nil {
		return false, err
	}
	rows, err := result.RowsAffected()
	return rows == 1, err
}

// Several processes run a nightly job. It fails the first time, and is then run once. A holder that is late,
// with an old token, is refused.
func TestANightlyJobIsRunOnce(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	store, err := openStore(z.Ctx, t.TempDir()+"/store")
	require.NoError(t, err)
	defer store.close()
	_, err = store.db.Exec(`CREATE TABLE locks (name TEXT PRIMARY KEY, token INTEGER NOT NULL);
		INSERT INTO locks VALUES ('nightly', 0);
		CREATE TABLE nights (night TEXT PRIMARY KEY);
		CREATE TABLE reports (night TEXT NOT NULL)`)
	require.NoError(t, err)
	lock := func() *leased.Mutex {
		s, err := leased.Open(z.Ctx, z.Servers(), 20*time.Second)
		require.NoError(t, err)
		t.Cleanup(s.Close)
		return leased.NewMutex(s, z.Root+"/nightly")
	}
	report := func(night string) func(tx *sql.Tx) error {
		return func(tx *sql.Tx) error {
			_, err := tx.Exec(`INSERT INTO reports VALUES (?)`, night)
			return err
		}
	}
	reports := func() (n int) {
		require.NoError(t, store.db.QueryRow(`SELECT count(*) FROM reports`).Scan(&n))
		return n
	}

	broken := errors.New("the printer is broken")
	err = runOnce(z.Ctx, lock(), store.db, "monday", func(tx *sql.Tx) error {
		return errors.Join(report("monday")(tx), broken)
	})
	require.ErrorIs(t, err, broken)
	require.Zero(t, reports(), "what a job did that failed")

	for n, night := range []string{"monday", "tuesday"} {
		var all sync.WaitGroup
		errs := make(chan error, 4)
		for range cap(errs) {
			one := lock()
			all.Go(func() { errs <- runOnce(z.Ctx, one, store.db, night, report(night)) })
		}
		all.Wait()
		for range cap(errs) {
			require.NoError(t, <-errs)
		}
		require.Equal(t, n+1, reports(), "after the night of %s", night)
	}

	_, err = store.db.Exec(`UPDATE locks SET token = token + 1000000`) // as when a later holder has used the store
	require.NoError(t, err)
	err = runOnce(z.Ctx, lock(), store.db, "wednesday", report("wednesday"))
	require.ErrorContains(t, err, "refused: the store has seen a greater token")
	require.Equal(t, 2, reports())
}
