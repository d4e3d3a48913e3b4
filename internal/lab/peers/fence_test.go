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

// The page's statements, in their order, and three that it speaks of.
const (
	whoMayShip = iota
	versionOfEachRow
	tokenOfTheLock
	versionOfAllRows
	tokenInEachRow
	tokenBeforeARead // that of the lock, with a read in place of its write
)

// A store is a database of orders and of the plans of two areas, which both have order 18, in a file, and each statement is run by a process
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
	db.statements = append(db.statements,
		strings.Replace(db.statements[versionOfEachRow], "version = :version", "(SELECT sum(version) FROM plans) = :version", 1),
		"UPDATE plans SET trucks = :trucks, token = :token WHERE area = :area AND token <= :token;",
		strings.Replace(db.statements[tokenOfTheLock], write, read, 1))
	db.run(`CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT, shipper TEXT);
		INSERT INTO orders (id, state) VALUES (17, 'open');
		CREATE TABLE plans (area INTEGER PRIMARY KEY, trucks TEXT,
			version INTEGER NOT NULL DEFAULT 0, token INTEGER NOT NULL DEFAULT 0);
		INSERT INTO plans (area, trucks) VALUES (1, 'orders 16, 18'), (2, 'orders 18, 19');
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
		".parameter set :version 0\n" + // which each client has read
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

// Both holders read order 18 in both plans. The next one takes it out of area 1's plan, and the late write takes it out
// of area 2's.
func TestATokenForEachLockAndNotForEachRow(t *testing.T) {
	z := needsSQLite(t)
	late, next := twoTokens(t, z)
	says := func(format string, args ...any) {
		t.Helper()
		chapter.SaysIn(t, "../../../docs/limits.md", format, args...)
	}
	const area1, area2 = "orders 16, 17", "order 19"
	plansWith18 := func(db *store) string { return db.run("SELECT count(*) FROM plans WHERE trucks LIKE '%18%';") }
	lateWrite := func(statement int) (string, *store) {
		db := newStore(t, z)
		require.Equal(t, "2", plansWith18(db), "plans with order 18 at the start")
		require.Equal(t, "accepted", db.writes(statement, next, 1, area1))
		return db.writes(statement, late, 2, area2), db
	}

	said, db := lateWrite(versionOfEachRow)
	says("a version of each row: the next holder has written area 1, and the late write to area 2 arrives: %s", said)
	require.Equal(t, "0", plansWith18(db), "plans with order 18")
	said, _ = lateWrite(tokenInEachRow)
	require.Equal(t, "accepted", said, "a token in each row")
	said, _ = lateWrite(versionOfAllRows)
	require.Equal(t, "refused", said, "one version for all rows")
	said, db = lateWrite(tokenOfTheLock)
	says("a token for the lock: the next holder has written area 1, and the late write to area 2 arrives: %s", said)
	require.Equal(t, "1", plansWith18(db), "plans with order 18")
	require.Equal(t, "accepted", db.writes(tokenOfTheLock, next, 1, "order 17"), "once more, with the same token")

	db = newStore(t, z)
	require.Equal(t, "accepted", db.writes(versionOfAllRows, late, 2, area2), "the late holder is the first to write")
	require.Equal(t, "refused", db.writes(versionOfAllRows, next, 1, area1), "and the next one has worked for nothing")

	db = newStore(t, z)
	require.Equal(t, "2", plansWith18(db), "plans with order 18 that the next holder reads")
	says("the next holder has read both plans, and then the late write to area 2 arrives: %s",
		db.writes(tokenOfTheLock, late, 2, area2))
	require.Equal(t, "accepted", db.writes(tokenOfTheLock, next, 1, area1))
	require.Equal(t, "0", plansWith18(db), "plans with order 18")

	db = newStore(t, z)
	require.Equal(t, "orders 18, 19", db.does(tokenBeforeARead, next, 2, "", ""), "what the next holder reads")
	says("the next holder has sent its token and read both plans, and then the late write to area 2 arrives: %s",
		db.writes(tokenOfTheLock, late, 2, area2))
	require.Equal(t, "orders 18, 19", db.plan(2), "what the next holder has read is still there")
	require.Empty(t, db.does(tokenBeforeARead, late, 2, "", ""), "the late holder reads: rows")

	db = newStore(t, z)
	require.Equal(t, "accepted", db.writes(tokenOfTheLock, late, 2, area2), "before the next holder sends its token")
	require.Equal(t, area2, db.does(tokenBeforeARead, next, 2, "", ""), "what the next holder reads")
}

var errLate = errors.New("the token was refused: a later holder has sent its own, or the lock has no row")

// planAreas holds the lock from the read to the last write.
func planAreas(ctx context.Context, lock *reentrant.Lock, db *sql.DB) error {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if err := hold.Unlock(); err != nil {
			log.Print(err) // says nothing about the plans
		}
	}()
	work := hold.Context(ctx) // ends also when the lock is lost

	var plans []plan // of all areas
	err = inTransaction(work, db, hold.Token(), func(tx *sql.Tx) (err error) {
		plans, err = readPlans(work, tx)
		return err
	})
	if err != nil {
		return err
	}
	for i, was := range plans {
		plans[i], err = planArea(work, plans, i) // minutes, in no transaction
		if err != nil {
			return err
		}
		if plans[i] == was {
			continue
		}
		err = inTransaction(work, db, hold.Token(), func(tx *sql.Tx) error {
			return writePlan(work, tx, plans[i])
		})
		if err != nil {
			return err
		}
	}
	return nil
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

// A plan is what an area's trucks carry.
type plan struct {
	area   int
	trucks string
}

func readPlans(ctx context.Context, tx *sql.Tx) (plans []plan, err error) {
	rows, err := tx.QueryContext(ctx, "SELECT trucks FROM plans ORDER BY area")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		p := plan{area: len(plans) + 1}
		if err := rows.Scan(&p.trucks); err != nil {
			return nil, err
		}
		plans = append(plans, p)
	}
	return plans, rows.Err()
}

// planArea is the long work. A test says what happens meanwhile.
var planArea func(ctx context.Context, plans []plan, i int) (plan, error)

func writePlan(ctx context.Context, tx *sql.Tx, p plan) error {
	_, err := tx.ExecContext(ctx, "UPDATE plans SET trucks = :trucks WHERE area = :area",
		sql.Named("trucks", p.trucks), sql.Named("area", p.area))
	return err
}

// The page's Go sends its token before it reads, and again before each write. So a late write arrives before the read,
// or it is refused; and the holder that is late itself neither reads nor writes.
func TestTheGoOfThePageSendsTheToken(t *testing.T) {
	z := needsSQLite(t)
	store := newStore(t, z)
	db := sql.OpenDB(shell{store})
	defer db.Close()
	session, err := reentrant.Open(zktest.Servers(), 10*time.Second)
	require.NoError(t, err)
	defer session.Close()
	lock := reentrant.New(session, z.Root+"/trucks")
	lateWrite := func(trucks string) error {
		return inTransaction(z.Ctx, db, 1, func(tx *sql.Tx) error { return writePlan(z.Ctx, tx, plan{2, trucks}) })
	}

	require.NoError(t, lateWrite("order 19"), "the late write, before the holder's token")
	planArea = func(_ context.Context, plans []plan, i int) (plan, error) {
		require.Equal(t, "order 19", plans[1].trucks, "the holder has read the late write")
		require.ErrorIs(t, lateWrite("nothing"), errLate, "the late write, after the holder's token")
		return plan{plans[i].area, []string{"orders 16 to 18", "order 19"}[i]}, nil
	}
	require.NoError(t, planAreas(z.Ctx, lock, db))
	require.Equal(t, "orders 16 to 18", store.plan(1))
	require.Equal(t, "order 19", store.plan(2), "the late write was refused, and this plan stayed as it was")

	const laterHolder = "UPDATE locks SET token = 9223372036854775807; UPDATE plans SET trucks = 'its own' WHERE area = 2;"
	planArea = func(_ context.Context, plans []plan, i int) (plan, error) {
		store.run(laterHolder)
		return plan{plans[i].area, "old"}, nil
	}
	require.ErrorIs(t, planAreas(z.Ctx, lock, db), errLate, "a later holder has written while this one worked")
	require.Equal(t, "orders 16 to 18", store.plan(1))
	require.Equal(t, "its own", store.plan(2))
	planArea = func(context.Context, []plan, int) (plan, error) {
		t.Error("the holder is late, and has read")
		return plan{}, nil
	}
	require.ErrorIs(t, planAreas(z.Ctx, lock, db), errLate, "a later holder has sent its token before this one read")

	hold, err := lock.TryLock(z.Ctx)
	require.NoError(t, err, "each has unlocked")
	require.NoError(t, hold.Unlock())

	store.run("UPDATE locks SET token = 0;")
	planArea = func(work context.Context, plans []plan, i int) (plan, error) {
		if plans[i].area == 1 {
			return plan{1, "order 20"}, nil
		}
		session.Close() // the lock is lost
		zktest.AwaitChan(z, "the work's context to end", work.Done())
		return plan{2, "too late"}, context.Cause(work)
	}
	require.ErrorIs(t, planAreas(z.Ctx, lock, db), reentrant.ErrLost, "the holder stops planning")
	require.Equal(t, "order 20", store.plan(1), "written before the lock was lost")
	require.Equal(t, "its own", store.plan(2))
	store.run("DELETE FROM locks;")
	require.ErrorIs(t, lateWrite("to a lock without a row"), errLate)
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
