package peers

import (
	"bufio"
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zklock/internal/chapter"
	"zklock/internal/property"
	"zklock/internal/zktest"
	reentrant "zklock/step05_reentrant"
)

// The page's statements, in their order.
const (
	whoMayShip = iota
	tokenInEachRow
	tokenOfTheLock
	tokenBeforeARead // which is that of the lock, with a read in place of its write
)

// A store is a database of orders and of the plans of two areas, in a file, and each statement is run by a process
// of its own.
type store struct {
	t          *testing.T
	ctx        context.Context // the test's own deadline
	file       string
	statements []string
}

func newStore(t *testing.T, z *zktest.Zoo) *store {
	t.Helper()
	page, err := os.ReadFile("../../../docs/limits.md")
	require.NoError(t, err)
	db := &store{t: t, ctx: z.Ctx, file: filepath.Join(t.TempDir(), "store.db")}
	for _, block := range regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		db.statements = append(db.statements, block[1])
	}
	require.Len(t, db.statements, 3, "statements on the page")
	const write, read = "UPDATE plans SET trucks = :trucks", "SELECT trucks FROM plans"
	db.statements = append(db.statements, strings.Replace(db.statements[tokenOfTheLock], write, read, 1))
	db.run(`CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT, shipper TEXT);
		INSERT INTO orders (id, state) VALUES (1, 'open'), (2, 'open'), (17, 'open');
		CREATE TABLE plans (area INTEGER PRIMARY KEY, trucks TEXT, token INTEGER NOT NULL DEFAULT 0);
		INSERT INTO plans (area, trucks) VALUES (1, 'none'), (2, 'none');
		CREATE TABLE locks (name TEXT PRIMARY KEY, token INTEGER NOT NULL DEFAULT 0);
		INSERT INTO locks (name) VALUES ('trucks');`)
	return db
}

func (db *store) run(sql string) (said string) {
	db.t.Helper()
	cmd := exec.CommandContext(db.ctx, "sqlite3", "-batch", "-bail", db.file)
	cmd.Stdin = strings.NewReader(sql)
	text, err := cmd.CombinedOutput()
	require.NoError(db.t, err, string(text))
	return strings.TrimSpace(string(text))
}

// does runs one of the page's statements for an area, and what else the client asks.
func (db *store) does(statement int, token int64, area int, trucks, andThen string) (said string) {
	db.t.Helper()
	return db.run(fmt.Sprintf(".parameter set :token %d\n", token) +
		fmt.Sprintf(".parameter set :area %d\n", area) +
		fmt.Sprintf(".parameter set :trucks \"'%s'\"\n", trucks) +
		db.statements[statement] + andThen)
}

// writes tells whether a statement has changed the plan. The client sees it by the rows that its
// last UPDATE has changed.
func (db *store) writes(statement int, token int64, area int, trucks string) string {
	db.t.Helper()
	rows := db.does(statement, token, area, trucks, "SELECT changes();")
	if db.plan(area) == trucks {
		require.Equal(db.t, "1", rows, "rows changed")
		return "accepted"
	}
	require.Equal(db.t, "0", rows, "rows changed")
	return "refused"
}

func (db *store) state(id int) string {
	db.t.Helper()
	return db.run(fmt.Sprintf("SELECT state FROM orders WHERE id = %d;", id))
}

func (db *store) plan(area int) (trucks string) {
	db.t.Helper()
	return db.run(fmt.Sprintf("SELECT trucks FROM plans WHERE area = %d;", area))
}

// needsSQLite leaves a test out where SQLite's shell is not installed, and says so.
func needsSQLite(t *testing.T) *zktest.Zoo {
	t.Helper()
	if err := missing(map[string]*exec.Cmd{"sqlite3": exec.Command("sqlite3", "--version")}); err != nil {
		if os.Getenv("ZKLOCK_REQUIRE_PEERS") != "" {
			t.Fatal(err)
		}
		t.Skipf("left out: a store in SQLite; %v", err)
	}
	return zktest.New(t)
}

// Ada claims the order and a cancellation comes, and the other way round: the first of them matches a row, and the
// second does not.
func TestOneStatementSaysWhoMayShip(t *testing.T) {
	z := needsSQLite(t)
	db := newStore(t, z)
	claim, cancellation, _ := strings.Cut(db.statements[whoMayShip], ";\n")
	matches := func(statement string) string { return db.run(statement + ";SELECT changes();") }
	require.Equal(t, "1", matches(claim), "rows that the claim matches")
	require.Equal(t, "0", matches(cancellation), "rows that the cancellation matches after the claim")
	require.Equal(t, "shipping", db.state(17))

	db = newStore(t, z)
	require.Equal(t, "1", matches(cancellation), "rows that the cancellation matches")
	require.Equal(t, "0", matches(claim), "rows that the claim matches after the cancellation")
	require.Equal(t, "cancelled", db.state(17))
}

// twoTokens are those of a holder that lost the lock, and of the next.
func twoTokens(t *testing.T, z *zktest.Zoo) (late, next int64) {
	t.Helper()
	a, b := step5.JoinAs(z, "A", property.Seat{Timeout: zktest.MortalTimeout}), step5.Join(z, "B")
	late = a.Acquire().Held().Token()
	waiting := b.Start()
	waiting.MustWait("A holds the lock")
	a.Crash()
	z.AwaitExpiry(a.Client)
	return late, waiting.Held().Token()
}

// One lock for the plans of two areas. The new holder works on area 1, and the late write to area 2 arrives.
func TestATokenForEachLockAndNotForEachRow(t *testing.T) {
	z := needsSQLite(t)
	late, next := twoTokens(t, z)
	says := func(format string, args ...any) {
		t.Helper()
		chapter.SaysIn(t, "../../../docs/limits.md", format, args...)
	}
	for _, c := range []struct {
		statement int
		name      string
		trucks    string // how many have order 18 afterwards
	}{{tokenInEachRow, "a token in each row", "2"}, {tokenOfTheLock, "a token for the lock", "1"}} {
		db := newStore(t, z)
		require.Equal(t, "accepted", db.writes(c.statement, late, 1, "order 16"))
		require.Equal(t, "accepted", db.writes(c.statement, next, 1, "order 17"))
		require.Equal(t, "accepted", db.writes(c.statement, next, 1, "order 18"), "once more, with the same token")
		require.Equal(t, "refused", db.writes(c.statement, late, 1, "order 16"))
		says("%s: the new holder has written the plan of area 1, and the late write to area 2 arrives: %s",
			c.name, db.writes(c.statement, late, 2, "order 18"))
		require.Equal(t, c.trucks, db.run("SELECT count(*) FROM plans WHERE trucks = 'order 18';"), "trucks with order 18")
	}

	db := newStore(t, z)
	read := db.plan(2)
	says("the new holder reads the plan of area 2, and then the late write to it arrives: %s",
		db.writes(tokenOfTheLock, late, 2, "late"))
	require.NotEqual(t, read, db.plan(2), "what the new holder has read was overwritten")

	db = newStore(t, z)
	read = db.does(tokenBeforeARead, next, 2, "", "")
	says("the new holder sends its token, and reads the plan of area 2, and then the late write to it arrives: %s",
		db.writes(tokenOfTheLock, late, 2, "late"))
	require.Equal(t, read, db.plan(2), "what the new holder has read is still there")
	require.Empty(t, db.does(tokenBeforeARead, late, 2, "", ""), "the late holder reads: rows")

	db = newStore(t, z)
	require.Equal(t, "accepted", db.writes(tokenOfTheLock, late, 2, "late"), "before the new holder sends its token")
	require.Equal(t, "late", db.does(tokenBeforeARead, next, 2, "", ""), "what the new holder reads")
}

var errLate = errors.New("a later holder has sent its token")

// planOnce holds the lock from the read to the write.
func planOnce(ctx context.Context, lock *reentrant.Lock, db *sql.DB) error {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if err := hold.Unlock(); err != nil {
			log.Print(err) // says nothing about the plan
		}
	}()
	work := hold.Context(ctx) // ends also when the lock is lost

	var orders []int
	err = inTransaction(work, db, hold.Token(), func(tx *sql.Tx) (err error) {
		orders, err = ordersToPlan(work, tx)
		return err
	})
	if err != nil {
		return err
	}
	if len(orders) == 0 {
		return nil // nothing to plan, or tomorrow's plan exists
	}
	plan, err := planTrucks(work, orders) // twenty minutes, in no transaction
	if err != nil {
		return err
	}
	return inTransaction(work, db, hold.Token(), func(tx *sql.Tx) error {
		return writePlan(work, tx, plan)
	})
}

// inTransaction sends the token, and then reads or writes.
func inTransaction(ctx context.Context, db *sql.DB, token int64, do func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after Commit this does nothing

	result, err := tx.ExecContext(ctx, `UPDATE locks SET token = :token
		WHERE name = 'trucks' AND token <= :token`, sql.Named("token", token))
	if err != nil {
		return err
	}
	rows, err := result.RowsAffected()
	if err != nil {
		return err
	}
	if rows == 0 {
		return errLate
	}
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

func ordersToPlan(ctx context.Context, tx *sql.Tx) (ids []int, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT id FROM orders WHERE state = 'open'
		AND NOT EXISTS (SELECT 1 FROM plans WHERE trucks <> 'none') ORDER BY id`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id int
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// planTrucks is the long work. A test says what happens meanwhile.
var planTrucks func(ctx context.Context, orders []int) (plan string, err error)

func writePlan(ctx context.Context, tx *sql.Tx, plan string) error {
	_, err := tx.ExecContext(ctx, "UPDATE plans SET trucks = :trucks WHERE area = 1", sql.Named("trucks", plan))
	return err
}

// The page's Go sends its token before it reads, and again before it writes. So a late write arrives before the read,
// or it is refused; and the holder that is late itself neither reads nor writes. A holder that finds a plan makes none.
func TestTheGoOfThePageSendsTheToken(t *testing.T) {
	z := needsSQLite(t)
	store := newStore(t, z)
	db := sql.OpenDB(shell{store})
	defer db.Close()
	session, err := reentrant.Open(zktest.Servers(), 10*time.Second)
	require.NoError(t, err)
	defer session.Close()
	lock := reentrant.New(session, z.Root+"/trucks")

	cancels := func(id int) func(tx *sql.Tx) error {
		return func(tx *sql.Tx) error {
			_, err := tx.ExecContext(z.Ctx, "UPDATE orders SET state = 'cancelled' WHERE id = :id", sql.Named("id", id))
			return err
		}
	}
	require.NoError(t, inTransaction(z.Ctx, db, 1, cancels(1)), "the late write, before the holder's token")
	planTrucks = func(_ context.Context, open []int) (string, error) {
		require.Equal(t, []int{2, 17}, open, "the holder has read the late write")
		require.ErrorIs(t, inTransaction(z.Ctx, db, 1, cancels(2)), errLate, "the late write, after the holder's token")
		require.Equal(t, "open", store.state(2))
		return "orders 2 and 17", nil
	}
	require.NoError(t, planOnce(z.Ctx, lock, db))
	require.Equal(t, "orders 2 and 17", store.plan(1))

	planTrucks = func(context.Context, []int) (string, error) {
		t.Error("tomorrow's plan exists, and the next holder plans again")
		return "again", nil
	}
	require.NoError(t, planOnce(z.Ctx, lock, db))
	require.Equal(t, "orders 2 and 17", store.plan(1))

	const noPlan = "UPDATE plans SET trucks = 'none';"
	store.run(noPlan)
	const later = "UPDATE locks SET token = 9223372036854775807; UPDATE plans SET trucks = 'those of the later holder';"
	planTrucks = func(context.Context, []int) (string, error) {
		store.run(later)
		return "old", nil
	}
	require.ErrorIs(t, planOnce(z.Ctx, lock, db), errLate, "a later holder has written while this one worked")
	require.Equal(t, "those of the later holder", store.plan(1))
	planTrucks = func(context.Context, []int) (string, error) {
		t.Error("the holder is late, and has read")
		return "", nil
	}
	require.ErrorIs(t, planOnce(z.Ctx, lock, db), errLate, "a later holder has written before this one read")

	hold, err := lock.TryLock(z.Ctx)
	require.NoError(t, err, "each has unlocked")
	require.NoError(t, hold.Unlock())

	store.run("UPDATE locks SET token = 0;" + noPlan)
	planTrucks = func(work context.Context, _ []int) (string, error) {
		session.Close() // the lock is lost
		zktest.AwaitChan(z, "the work's context to end", work.Done())
		return "", context.Cause(work)
	}
	require.ErrorIs(t, planOnce(z.Ctx, lock, db), reentrant.ErrLost, "the holder stops planning")
	require.Equal(t, "none", store.plan(1))
}

// A shell lets database/sql use SQLite's shell: each connection is a process.
type shell struct{ db *store }

func (s shell) Driver() driver.Driver { return nil }

func (s shell) Connect(context.Context) (driver.Conn, error) {
	cmd := exec.CommandContext(s.db.ctx, "sqlite3", "-batch", "-bail", s.db.file)
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		return nil, err
	}
	return &connection{cmd, in, bufio.NewScanner(out)}, nil
}

type connection struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func (c *connection) Prepare(string) (driver.Stmt, error) { return nil, errors.ErrUnsupported }
func (c *connection) Begin() (driver.Tx, error)           { _, err := c.run("BEGIN", nil); return c, err }
func (c *connection) Commit() error                       { _, err := c.run("COMMIT", nil); return err }
func (c *connection) Rollback() error                     { _, err := c.run("ROLLBACK", nil); return err }
func (c *connection) Close() error                        { return errors.Join(c.in.Close(), c.cmd.Wait()) }

// run returns the lines that a statement prints.
func (c *connection) run(statement string, args []driver.NamedValue) (lines []string, err error) {
	const end = "-- end"
	for _, arg := range args {
		fmt.Fprintf(c.in, ".parameter set :%s \"'%v'\"\n", arg.Name, arg.Value)
	}
	if _, err := fmt.Fprintf(c.in, "%s;\n.print %q\n", statement, end); err != nil {
		return nil, err
	}
	for c.out.Scan() {
		if c.out.Text() == end {
			return lines, nil
		}
		lines = append(lines, c.out.Text())
	}
	return nil, fmt.Errorf("%s: SQLite's shell has ended: %w", statement, cmp.Or(c.out.Err(), io.EOF))
}

func (c *connection) ExecContext(_ context.Context, statement string, args []driver.NamedValue) (driver.Result, error) {
	lines, err := c.run(statement+"; SELECT changes()", args)
	if err != nil {
		return nil, err
	}
	rows, err := strconv.ParseInt(strings.Join(lines, ""), 10, 64)
	return driver.RowsAffected(rows), err
}

func (c *connection) QueryContext(_ context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	lines, err := c.run(query, args)
	return &column{lines}, err
}

// A column is a result of one column.
type column struct{ values []string }

func (c *column) Columns() []string { return []string{"value"} }
func (c *column) Close() error      { return nil }

func (c *column) Next(row []driver.Value) error {
	if len(c.values) == 0 {
		return io.EOF
	}
	row[0], c.values = c.values[0], c.values[1:]
	return nil
}
