package peers

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
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
	tokenInEachRow = iota
	tokenOfTheLock
	whoMayShip
	tokenBeforeARead // which the page tells by what it replaces
)

// An orders is a database of two orders, in a file, and each statement is run by a process
// of its own.
type orders struct {
	t          *testing.T
	ctx        context.Context // the test's own deadline
	file       string
	statements []string
}

func newOrders(t *testing.T, z *zktest.Zoo) *orders {
	t.Helper()
	page, err := os.ReadFile("../../../docs/limits.md")
	require.NoError(t, err)
	db := &orders{t: t, ctx: z.Ctx, file: filepath.Join(t.TempDir(), "orders.db")}
	for _, block := range regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		db.statements = append(db.statements, block[1])
	}
	require.Len(t, db.statements, 3, "statements on the page")
	const write, read = "UPDATE orders SET state = :state", "SELECT state FROM orders"
	require.Contains(t, string(page), "with `"+read+"` in place of `"+write+"`")
	db.statements = append(db.statements, strings.Replace(db.statements[tokenOfTheLock], write, read, 1))
	db.run(`CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT, token INTEGER NOT NULL DEFAULT 0, shipper TEXT);
		INSERT INTO orders (id, state) VALUES (1, 'new'), (2, 'new'), (17, 'open');
		CREATE TABLE locks (name TEXT PRIMARY KEY, token INTEGER NOT NULL DEFAULT 0);
		INSERT INTO locks (name) VALUES ('orders');`)
	return db
}

func (db *orders) run(sql string) (said string) {
	db.t.Helper()
	cmd := exec.CommandContext(db.ctx, "sqlite3", "-batch", "-bail", db.file)
	cmd.Stdin = strings.NewReader(sql)
	text, err := cmd.CombinedOutput()
	require.NoError(db.t, err, string(text))
	return strings.TrimSpace(string(text))
}

// does runs one of the page's statements for an order, and what else the client asks.
func (db *orders) does(statement int, token int64, id int, state, andThen string) (said string) {
	db.t.Helper()
	return db.run(fmt.Sprintf(".parameter set :token %d\n", token) +
		fmt.Sprintf(".parameter set :id %d\n", id) +
		fmt.Sprintf(".parameter set :state \"'%s'\"\n", state) +
		db.statements[statement] + andThen)
}

// writes tells whether a statement has changed the order. The client sees it by the rows that its
// last UPDATE has changed.
func (db *orders) writes(statement int, token int64, id int, state string) string {
	db.t.Helper()
	rows := db.does(statement, token, id, state, "SELECT changes();")
	if db.state(id) == state {
		require.Equal(db.t, "1", rows, "rows changed")
		return "accepted"
	}
	require.Equal(db.t, "0", rows, "rows changed")
	return "refused"
}

func (db *orders) state(id int) string {
	db.t.Helper()
	return db.run(fmt.Sprintf("SELECT state FROM orders WHERE id = %d;", id))
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
	db := newOrders(t, z)
	claim, cancellation, _ := strings.Cut(db.statements[whoMayShip], "\n")
	matches := func(statement string) string { return db.run(statement + "SELECT changes();") }
	require.Equal(t, "1", matches(claim), "rows that the claim matches")
	require.Equal(t, "0", matches(cancellation), "rows that the cancellation matches after the claim")
	require.Equal(t, "shipping", db.state(17))

	db = newOrders(t, z)
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

// One lock for two orders. The new holder works on order 1, and the late write to
// order 2 arrives.
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
	}{{tokenInEachRow, "a token in each row"}, {tokenOfTheLock, "a token for the lock"}} {
		db := newOrders(t, z)
		require.Equal(t, "accepted", db.writes(c.statement, late, 1, "begun"))
		require.Equal(t, "accepted", db.writes(c.statement, next, 1, "paid"))
		require.Equal(t, "accepted", db.writes(c.statement, next, 1, "sent"), "once more, with the same token")
		require.Equal(t, "refused", db.writes(c.statement, late, 1, "late"))
		says("%s: the new holder has written order 1, and the late write to order 2 arrives: %s",
			c.name, db.writes(c.statement, late, 2, "late"))
	}

	db := newOrders(t, z)
	read := db.state(2)
	says("the new holder reads order 2, and then the late write to it arrives: %s",
		db.writes(tokenOfTheLock, late, 2, "late"))
	require.NotEqual(t, read, db.state(2), "what the new holder has read was overwritten")

	db = newOrders(t, z)
	read = db.does(tokenBeforeARead, next, 2, "", "")
	says("the new holder sends its token, and reads order 2, and then the late write to it arrives: %s",
		db.writes(tokenOfTheLock, late, 2, "late"))
	require.Equal(t, read, db.state(2), "what the new holder has read is still there")
	require.Empty(t, db.does(tokenBeforeARead, late, 2, "", ""), "the late holder reads: rows")
}

var errLate = errors.New("a later holder has written")

// ship takes the lock and writes that an order is shipped, by the page's first statement.
func ship(ctx context.Context, lock *reentrant.Lock, db *sql.DB, update string, id int) error {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer hold.Unlock()
	token := hold.Token()
	result, err := db.Exec(update, sql.Named("state", "shipped"), sql.Named("id", id), sql.Named("token", token))
	if err != nil {
		return err
	}
	if rows, err := result.RowsAffected(); err != nil || rows == 0 {
		return errors.Join(err, errLate)
	}
	return nil
}

// The page's Go writes, and learns from the number of rows that a later holder has written.
func TestTheGoOfThePageSendsTheToken(t *testing.T) {
	z := needsSQLite(t)
	db := newOrders(t, z)
	throughGo := sql.OpenDB(shell{db})
	defer throughGo.Close()
	session, err := reentrant.Open(zktest.Servers(), 10*time.Second)
	require.NoError(t, err)
	defer session.Close()
	lock := reentrant.New(session, z.Root+"/orders")

	require.NoError(t, ship(z.Ctx, lock, throughGo, db.statements[tokenInEachRow], 17))
	require.Equal(t, "shipped", db.state(17))
	require.NotEqual(t, "0", db.run("SELECT token FROM orders WHERE id = 17;"), "the token that the row keeps")

	db.run("UPDATE orders SET state = 'cancelled', token = 9223372036854775807 WHERE id = 17;")
	require.ErrorIs(t, ship(z.Ctx, lock, throughGo, db.statements[tokenInEachRow], 17), errLate)
	require.Equal(t, "cancelled", db.state(17), "what the later holder has written")
}

// A shell lets database/sql run a statement in SQLite's shell.
type shell struct{ db *orders }

func (s shell) Connect(context.Context) (driver.Conn, error) { return s, nil }
func (s shell) Driver() driver.Driver                        { return nil }
func (s shell) Prepare(string) (driver.Stmt, error)          { return nil, errors.ErrUnsupported }
func (s shell) Begin() (driver.Tx, error)                    { return nil, errors.ErrUnsupported }
func (s shell) Close() error                                 { return nil }

func (s shell) ExecContext(_ context.Context, statement string, args []driver.NamedValue) (driver.Result, error) {
	var parameters string
	for _, arg := range args {
		parameters += fmt.Sprintf(".parameter set :%s \"'%v'\"\n", arg.Name, arg.Value)
	}
	rows, err := strconv.ParseInt(s.db.run(parameters+statement+"SELECT changes();"), 10, 64)
	return driver.RowsAffected(rows), err
}
