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
	"slices"
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

const limitsPage, casesPage = "../../../docs/limits.md", "../../../docs/cases.md"

// The statements of both pages, in their order.
const (
	writeOfAVersion = iota
	readThatRaisesTheVersion
	writeWithAToken
	readWithAToken
	nextNumber
	whoMayShip
	lockInADatabase
	manyRows
)

// A store is a database of orders and of a depot's plan, which has order 18, in a file. Each statement is run by a
// process of its own.
type store struct {
	t          *testing.T
	ctx        context.Context // the test's own deadline
	file       string
	statements []string
}

func newStore(t *testing.T, z *zktest.Zoo) *store {
	t.Helper()
	limits, err := os.ReadFile(limitsPage)
	require.NoError(t, err)
	cases, err := os.ReadFile(casesPage)
	require.NoError(t, err)
	page := append(limits, cases...)
	db := &store{t: t, ctx: z.Ctx, file: filepath.Join(t.TempDir(), "store.db")}
	db.statements = blocks(page, "sql")
	require.Len(t, db.statements, 8, "statements on the pages")
	column := regexp.MustCompile("`(token BIGINT .*?)`").FindSubmatch(page)
	require.NotNil(t, column, "the token's column on the page")
	db.run(fmt.Sprintf(`CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT, shipper TEXT);
		INSERT INTO orders (id, state) VALUES (17, 'open');
		CREATE TABLE plan (orders TEXT, version INTEGER NOT NULL DEFAULT 0, %[1]s);
		INSERT INTO plan (orders) VALUES ('16, 18');
		CREATE TABLE fence (%[1]s);
		INSERT INTO fence DEFAULT VALUES;
		CREATE TABLE counter (token INTEGER NOT NULL);
		INSERT INTO counter VALUES (0);
		CREATE TABLE locks (name TEXT PRIMARY KEY, holder TEXT, token INTEGER NOT NULL DEFAULT 0, until INTEGER NOT NULL DEFAULT 0);
		INSERT INTO locks (name) VALUES ('tours');`, column[1]))
	return db
}

// blocks are the texts that a page has in this language.
func blocks(page []byte, language string) (texts []string) {
	for _, block := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllSubmatch(page, -1) {
		texts = append(texts, string(block[1]))
	}
	return texts
}

func (db *store) run(sql string) (said string) {
	db.t.Helper()
	cmd := exec.CommandContext(db.ctx, "sqlite3", "-batch", "-bail", db.file)
	cmd.Stdin = strings.NewReader(sql)
	text, err := cmd.CombinedOutput()
	require.NoError(db.t, err, string(text))
	return strings.TrimSpace(string(text))
}

// A parameter is one of a statement's, such as :token.
type parameter struct {
	name  string
	value any
}

func (db *store) does(statement string, parameters ...parameter) (said string) {
	db.t.Helper()
	var text strings.Builder
	for _, p := range parameters {
		fmt.Fprintf(&text, ".parameter set :%s \"'%v'\"\n", p.name, p.value)
	}
	return db.run(text.String() + statement)
}

// withoutOrder18 is the plan that a holder writes. It tells whether the store has accepted it, which the client sees by
// the number of rows that have changed.
func (db *store) withoutOrder18(statement string, number parameter) string {
	db.t.Helper()
	before := db.plan()
	switch rows := db.does(statement+"SELECT changes();", number, parameter{"orders", "16"}); rows {
	case "1":
		require.Equal(db.t, "16", db.plan())
		return "accepted"
	default:
		require.Equal(db.t, "0", rows, "rows changed")
		require.Equal(db.t, before, db.plan())
		return "refused"
	}
}

// readsOrder18 lets a holder read the plan, and send its token.
func (db *store) readsOrder18(token parameter) {
	db.t.Helper()
	require.Equal(db.t, "16, 18", db.does(db.statements[readWithAToken], token))
}

func (db *store) state(id int) string {
	db.t.Helper()
	return db.run(fmt.Sprintf("SELECT state FROM orders WHERE id = %d;", id))
}

func (db *store) plan() (orders string) {
	db.t.Helper()
	return db.run("SELECT orders FROM plan;")
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

// A row is the lock: it has one holder until its deadline, and each holder's token is greater.
func TestARowIsALockWithATokenAndADeadline(t *testing.T) {
	db := newStore(t, needsSQLite(t))
	lock, renew, _ := strings.Cut(db.statements[lockInADatabase], ";\n")
	locks := func(who string) (token string) { return db.does(lock+";", parameter{"me", who}) }
	renews := func(token int) (rows string) { return db.does(renew+"SELECT changes();", parameter{"token", token}) }
	require.Equal(t, "1", locks("Ada"))
	require.Empty(t, locks("Ben"), "Ada holds it")
	require.Equal(t, "1", renews(1))
	db.run("UPDATE locks SET until = unixepoch() - 1;") // the deadline has passed
	require.Equal(t, "2", locks("Ben"))
	require.Equal(t, "0", renews(1), "Ada is late")
}

// A claim that is sent again changes nothing, and the row says whose it is.
func TestAClaimCanBeSentAgain(t *testing.T) {
	db := newStore(t, needsSQLite(t))
	claim, _, _ := strings.Cut(db.statements[whoMayShip], ";\n")
	require.Equal(t, "1", db.run(claim+";SELECT changes();"))
	require.Equal(t, "0", db.run(claim+";SELECT changes();"))
	require.Equal(t, "Ada 7c1f", db.run("SELECT shipper FROM orders WHERE id = 17;"))
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

// In one database the version covers all that both holders have read.
func TestAVersionIsEnoughInOneDatabase(t *testing.T) {
	z := needsSQLite(t)
	both := newStore(t, z)
	read := parameter{"version", both.run("SELECT version FROM plan;")}
	write := both.statements[writeOfAVersion]
	require.Equal(t, "accepted", both.withoutOrder18(write, read), "the next holder")
	chapter.SaysIn(t, limitsPage, "a version in one database: the next holder has written, and the late write arrives: %s",
		both.withoutOrder18(write, read))

	both = newStore(t, z) // the next holder reads, has nothing to change, and leaves the version as it is
	late := both.withoutOrder18(write, read)
	require.Equal(t, "accepted", late, "the late write: so each holder has to raise the version")
}

// Both holders read order 18 in both plans. The next one takes it out of depot 1's plan, and the late write takes it out
// of depot 2's.
func TestTwoDepots(t *testing.T) {
	z := needsSQLite(t)
	late, next := twoTokens(t, z)
	lateToken, nextToken := parameter{"token", late}, parameter{"token", next}
	read := parameter{"version", 0} // both have read the first version
	for _, c := range []struct {
		name           string
		readsWithToken bool
		writesWith     int
		late, next     parameter
		lateWrite      string
		hasOrder18     bool // one of the plans, at the end
	}{
		{"a version in each store", false, writeOfAVersion, read, read, "accepted", false},
		{"a token with each write", false, writeWithAToken, lateToken, nextToken, "accepted", false},
		{"a token with each read and write", true, writeWithAToken, lateToken, nextToken, "refused", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			one, two := newStore(t, z), newStore(t, z)
			if c.readsWithToken {
				for _, token := range []parameter{c.late, c.next} {
					one.readsOrder18(token)
					two.readsOrder18(token)
				}
			}
			require.Equal(t, "accepted", one.withoutOrder18(one.statements[c.writesWith], c.next))
			got := two.withoutOrder18(two.statements[c.writesWith], c.late)
			if c.writesWith == writeOfAVersion { // with tokens, the page lets one type it
				chapter.SaysIn(t, limitsPage,
					"%s: the next holder has written depot 1, and the late write to depot 2 arrives: %s", c.name, got)
			}
			require.Equal(t, c.lateWrite, got)
			require.Equal(t, c.hasOrder18, strings.Contains(one.plan()+two.plan(), "18"), "order 18 is in a plan")
		})
	}

	two := newStore(t, z)
	require.Equal(t, "accepted", two.withoutOrder18(two.statements[writeWithAToken], lateToken), "before the next holder reads")
	require.Equal(t, "16", two.does(two.statements[readWithAToken], nextToken), "what the next holder reads")
	require.Empty(t, two.does(two.statements[readWithAToken], lateToken), "the late holder reads: rows")
}

// What the page lets its reader type: depots as files, and two writes.
func TestTheDepotsOfTheHand(t *testing.T) {
	z := needsSQLite(t)
	page, err := os.ReadFile(limitsPage)
	require.NoError(t, err)
	byHand := slices.DeleteFunc(blocks(page, "sh"), func(commands string) bool {
		return !strings.Contains(commands, "sqlite3 ")
	})
	require.Len(t, byHand, 3, "commands by hand")
	dir := t.TempDir()
	types := func(commands string) string {
		t.Helper()
		commands = strings.ReplaceAll(commands, "/tmp/", dir+"/")
		text, err := exec.CommandContext(z.Ctx, "sh", "-c", commands).CombinedOutput()
		require.NoError(t, err, string(text))
		return string(text)
	}
	makesNew, writes, reads := byHand[0], byHand[1], byHand[2]
	types(makesNew)
	require.Equal(t, "1|16\n1|19\n", types(writes), "nobody has read with a token")
	types(makesNew)
	types(reads)
	require.Equal(t, "1|16\n0|18, 19\n", types(writes), "both have read with their tokens")
}

// The row of the token refuses a transaction of the late holder, whichever rows it is about.
func TestManyRowsHaveOneToken(t *testing.T) {
	z := needsSQLite(t)
	late, next := twoTokens(t, z)
	db := newStore(t, z)
	rowsOf := func(token int64) string {
		return db.does(db.statements[manyRows]+"SELECT changes();", parameter{"token", token})
	}
	require.Equal(t, "1", rowsOf(late), "the late holder reads")
	require.Equal(t, "1", rowsOf(next), "the next holder reads")
	require.Equal(t, "0", rowsOf(late), "the late holder writes")
	require.Equal(t, "1", rowsOf(next), "the next holder writes")
}

// Without a lock, whoever reads stops all who have read before.
func TestACounterWithoutALockLetsOnlyTheLastWrite(t *testing.T) {
	z := needsSQLite(t)
	one, two := newStore(t, z), newStore(t, z)
	var numbers []parameter
	for range 3 {
		number := parameter{"token", one.run(one.statements[nextNumber])}
		one.readsOrder18(number)
		two.readsOrder18(number)
		numbers = append(numbers, number)
	}
	var said []string
	for _, number := range numbers {
		said = append(said, two.withoutOrder18(two.statements[writeWithAToken], number))
	}
	chapter.SaysIn(t, limitsPage,
		"numbers from a counter, and no lock: three workers have read, and write in turn: %s", strings.Join(said, ", "))
}

// The late holder is paused between its two reads. If a read raises the version, each of the two is the last reader in
// one of the stores, and writes there.
func TestAVersionRaisedByReadsLetsTwoWrite(t *testing.T) {
	z := needsSQLite(t)
	one, two := newStore(t, z), newStore(t, z)
	read := func(db *store) parameter {
		plan := db.run(db.statements[readThatRaisesTheVersion])
		version, found := strings.CutPrefix(plan, "16, 18|")
		require.True(t, found, plan)
		return parameter{"version", version}
	}
	read(one) // the late holder, which is paused now
	nextsOne := read(one)
	read(two) // the next holder
	latesTwo := read(two)
	require.Equal(t, "accepted", one.withoutOrder18(one.statements[writeOfAVersion], nextsOne))
	require.Equal(t, "accepted", two.withoutOrder18(two.statements[writeOfAVersion], latesTwo))
}

// errLate: a later holder has sent its own token, or the plan has no row.
var errLate = errors.New("the store has refused the token")

// planTours holds the lock from the first read to the last write.
func planTours(
	ctx context.Context, lock *reentrant.Lock, depots []*sql.DB,
) error {
	hold, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if err := hold.Unlock(); err != nil {
			log.Print(err) // the plans are safe anyway
		}
	}()
	work := hold.Context(ctx) // ends also when the lock is lost

	plans := make([]string, len(depots))
	for i, depot := range depots {
		plans[i], err = readPlan(work, depot, hold.Token())
		if err != nil {
			return err
		}
	}
	for i, depot := range depots {
		before := plans[i]
		plans[i], err = replan(work, plans, i)
		if err != nil {
			return err
		}
		if plans[i] == before {
			continue
		}
		err = writePlan(work, depot, hold.Token(), plans[i])
		if err != nil {
			return err
		}
	}
	return nil
}

func readPlan(
	ctx context.Context, depot *sql.DB, token int64,
) (orders string, err error) {
	err = depot.QueryRowContext(ctx, `
		UPDATE plan SET token = :token
		WHERE token <= :token RETURNING orders`,
		sql.Named("token", token)).Scan(&orders)
	if errors.Is(err, sql.ErrNoRows) {
		return "", errLate
	}
	return orders, err
}

func writePlan(
	ctx context.Context, depot *sql.DB, token int64, orders string,
) error {
	result, err := depot.ExecContext(ctx, `
		UPDATE plan SET orders = :orders, token = :token
		WHERE token <= :token`,
		sql.Named("orders", orders), sql.Named("token", token))
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
	return nil
}

// replan is the long work. A test says what happens meanwhile.
var replan func(ctx context.Context, plans []string, i int) (string, error)

// The page's Go sends its token with each read and write. So a late write arrives before the read, or it is refused; and
// the holder that is late itself neither reads nor writes.
func TestTheGoOfThePageSendsTheToken(t *testing.T) {
	z := needsSQLite(t)
	stores := []*store{newStore(t, z), newStore(t, z)}
	var depots []*sql.DB
	for _, s := range stores {
		db := sql.OpenDB(shell{s})
		defer db.Close()
		depots = append(depots, db)
	}
	session, err := reentrant.Open(zktest.Servers(), 10*time.Second)
	require.NoError(t, err)
	defer session.Close()
	lock := reentrant.New(session, z.Root+"/tours")
	const lateToken = 1
	plans := func() []string { return []string{stores[0].plan(), stores[1].plan()} }

	require.NoError(t, writePlan(z.Ctx, depots[1], lateToken, "18, 19"), "(1) the late write, before the holder's read")
	replan = func(_ context.Context, plans []string, i int) (string, error) {
		require.Equal(t, "18, 19", plans[1], "the holder has read the late write")
		require.ErrorIs(t, writePlan(z.Ctx, depots[1], lateToken, "19"), errLate, "(2) the late write, after the holder's read")
		return []string{"16", "18, 19"}[i], nil
	}
	require.NoError(t, planTours(z.Ctx, lock, depots), "the first write of a holder, after its own read")
	require.Equal(t, []string{"16", "18, 19"}, plans())

	const laterHolder = "UPDATE plan SET token = 9223372036854775807, orders = 'its own';"
	replan = func(_ context.Context, _ []string, i int) (string, error) {
		stores[i].run(laterHolder)
		return "old", nil
	}
	require.ErrorIs(t, planTours(z.Ctx, lock, depots), errLate, "(3) a later holder has written while this one worked")
	require.Equal(t, []string{"its own", "18, 19"}, plans())
	replan = func(context.Context, []string, int) (string, error) {
		t.Error("the holder is late, and has read")
		return "", nil
	}
	require.ErrorIs(t, planTours(z.Ctx, lock, depots), errLate, "(3) a later holder has read before this one")

	hold, err := lock.TryLock(z.Ctx)
	require.NoError(t, err, "each has unlocked")
	require.NoError(t, hold.Unlock())

	stores[0].run("UPDATE plan SET token = 0;")
	replan = func(work context.Context, _ []string, i int) (string, error) {
		if i == 0 {
			return "20", nil
		}
		session.Close() // the lock is lost
		zktest.AwaitChan(z, "the work's context to end", work.Done())
		return "too late", context.Cause(work)
	}
	require.ErrorIs(t, planTours(z.Ctx, lock, depots), reentrant.ErrLost, "the holder stops planning")
	require.Equal(t, []string{"20", "18, 19"}, plans(), "the first was written before the lock was lost")

	stores[0].run("DELETE FROM plan;")
	require.ErrorIs(t, writePlan(z.Ctx, depots[0], lateToken, "16"), errLate, "the plan has no row")
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
