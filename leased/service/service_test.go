package main

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zklock/internal/process"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

// A replica of these tests is a process of its own: the test program, started again as the service.
func TestMain(m *testing.M) {
	if process.Plays("replica") {
		go process.EndWithParent()
		main()
		return
	}
	zktest.Main(m)
}

// The session's timeout.
const (
	short  = 4 * time.Second  // a test waits until it has passed
	long   = 20 * time.Second // even on a busy machine, a hold survives the death of a server
	beyond = zktest.Patience  // longer than the test: no test may wait for it
)

// A story has three servers, a store, and two replicas, a and b. At first a leads, and b waits.
type story struct {
	*zktest.Zoo
	t        *testing.T
	ensemble *zkserver.Ensemble
	file     string
	db       *sql.DB
	timeout  time.Duration
	a, b     *child
}

func begin(t *testing.T, timeout time.Duration) *story {
	t.Helper()
	ensemble, _, _ := zktest.ThreeServers(t)
	s := &story{Zoo: zktest.NewOn(t, ensemble.Server), t: t, ensemble: ensemble, timeout: timeout}
	s.file = filepath.Join(t.TempDir(), "payments.db")
	store, err := openStore(s.Ctx, s.file)
	require.NoError(t, err)
	t.Cleanup(store.close)
	s.db = store.db
	s.a = s.start("a")
	s.Await("a to lead", s.a.leads)
	s.b = s.start("b")
	s.Await("b to wait", func() bool { return s.b.metric("zklock_waiting") == 1 })
	return s
}

// A child is a replica that runs as a process of its own, as seen from outside.
type child struct {
	name  string
	story *story
	cmd   *exec.Cmd
	said  output
	url   string
	ended chan struct{}
}

// output is what a replica prints.
type output struct {
	sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.Lock()
	defer o.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.Lock()
	defer o.Unlock()
	return o.text.String()
}

var serving = regexp.MustCompile(`serving address=(\S+)`)

// start returns when the replica serves. If it still runs at the test's end, it is killed.
func (s *story) start(name string) *child {
	s.t.Helper()
	p := &child{name: name, story: s, ended: make(chan struct{})}
	p.cmd = process.InRole("replica", exec.Command(os.Args[0], "-name", name, "-listen", "127.0.0.1:0",
		"-store", s.file, "-zookeeper", strings.Join(s.Servers(), ","), "-lock", s.Root+"/payments",
		"-timeout", s.timeout.String()))
	p.cmd.Stderr = &p.said
	stdin, err := p.cmd.StdinPipe() // it is closed when this process ends
	require.NoError(s.t, err)
	require.NoError(s.t, p.cmd.Start())
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait()
	}()
	s.t.Cleanup(func() {
		if s.t.Failed() {
			s.t.Logf("%s said:\n%s", name, &p.said)
		}
		_ = p.cmd.Process.Kill()
		<-p.ended
		stdin.Close()
	})
	s.Await(name+" to serve", func() bool {
		if found := serving.FindStringSubmatch(p.said.String()); found != nil {
			p.url = "http://" + found[1]
		}
		return p.url != "" || p.hasEnded()
	})
	require.NotEmpty(s.t, p.url, "%s has ended: %s", name, &p.said)
	return p
}

func (p *child) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

func (p *child) signal(s os.Signal) {
	p.story.t.Helper()
	require.NoError(p.story.t, p.cmd.Process.Signal(s))
}

// stop pauses a replica during its work.
func (p *child) stop() {
	p.story.t.Helper()
	p.signal(syscall.SIGSTOP)
	require.NoError(p.story.t, process.AwaitStop(p.cmd.Process))
}

// endsWell sends SIGTERM to a replica, and checks its exit code. With -race the code also reports a race.
func (p *child) endsWell() {
	p.story.t.Helper()
	p.signal(syscall.SIGTERM)
	zktest.AwaitChan(p.story.Zoo, p.name+" to end", p.ended)
	require.Equal(p.story.t, 0, p.cmd.ProcessState.ExitCode(), "the exit code of %s", p.name)
}

var client = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// ask returns the status and the text. The status is 0 if there is no answer.
func (p *child) ask(path string) (status int, text string) {
	answer, err := client.Get(p.url + path)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(body)
}

func (p *child) isReady() bool {
	status, _ := p.ask("/readyz")
	return status == http.StatusOK
}

// metric returns the number that /metrics has for a name, or -1 if there is none.
func (p *child) metric(name string) float64 {
	_, text := p.ask("/metrics")
	_, rest, _ := strings.Cut("\n"+text, "\n"+name+" ")
	number, _, _ := strings.Cut(rest, "\n")
	value, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return -1
	}
	return value
}

func (p *child) leads() bool { return p.metric("zklock_holds") == 1 }

// leaseEnd returns when the replica's lease will be over if it is not renewed.
func (p *child) leaseEnd() time.Time {
	left := p.metric("zklock_lease_left_seconds")
	return time.Now().Add(time.Duration(left * float64(time.Second)))
}

// takes gives a replica an invoice.
func (p *child) takes(cents int) {
	p.story.t.Helper()
	answer, err := client.PostForm(p.url+"/invoices", url.Values{"cents": {strconv.Itoa(cents)}})
	require.NoError(p.story.t, err)
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	require.Equal(p.story.t, http.StatusCreated, answer.StatusCode, string(body))
}

// enter adds invoices to the store, all in one moment.
func (s *story) enter(n int) {
	s.t.Helper()
	_, err := s.db.ExecContext(s.Ctx, `WITH RECURSIVE count(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM count WHERE i < ?)
		INSERT INTO invoices (cents) SELECT i FROM count`, n)
	require.NoError(s.t, err)
}

// number returns the answer to a query for a number.
func (s *story) number(query string, args ...any) (n int64) {
	s.t.Helper()
	require.NoError(s.t, s.db.QueryRowContext(s.Ctx, query, args...).Scan(&n), query)
	return n
}

// paidBy counts the payments of a replica.
func (s *story) paidBy(p *child) int64 {
	s.t.Helper()
	return s.number(`SELECT count(*) FROM payments WHERE name = ?`, p.name)
}

func (s *story) awaitAllPaid() {
	s.t.Helper()
	const unpaid = `SELECT count(*) FROM invoices WHERE paid = 0`
	s.Await("all invoices to be paid", func() bool { return s.number(unpaid) == 0 })
}

// isRight asks the store whether each invoice was paid once, and whether the tokens have never decreased.
func (s *story) isRight() {
	s.t.Helper()
	require.Zero(s.t, s.number(`SELECT count(*) FROM invoices WHERE id NOT IN (SELECT invoice FROM payments)`),
		"invoices without a payment")
	require.Zero(s.t, s.number(`SELECT count(*) - count(DISTINCT invoice) FROM payments`),
		"payments of an invoice that was paid before")
	require.Zero(s.t, s.number(`SELECT count(*) FROM payments AS late
		WHERE token < (SELECT max(token) FROM payments WHERE id < late.id)`),
		"payments with a smaller token than one before")
}

// When the leader receives SIGTERM, it finishes its payment and releases the lock. Then b pays the remaining
// invoices, although a's session would outlive this test.
func TestALeaderThatIsToldToEnd(t *testing.T) {
	s := begin(t, beyond)
	s.enter(500)
	s.Await("a to pay", func() bool { return s.paidBy(s.a) > 0 })
	s.a.endsWell()
	s.Await("b to lead", s.b.leads)
	s.awaitAllPaid()
	s.isRight()
	require.Positive(t, s.paidBy(s.b), "what a has left to b")
	require.NotContains(t, s.a.said.String(), "ERROR")
	s.b.endsWell()
}

// A replica that waits also ends well, and the leader continues.
func TestAWaitingReplicaThatIsToldToEnd(t *testing.T) {
	s := begin(t, beyond)
	s.b.endsWell()
	s.a.takes(100)
	s.awaitAllPaid()
	s.isRight()
	require.EqualValues(t, 1, s.a.metric("zklock_taken_total"))
	s.a.endsWell()
}

// kill -9 during the work: b leads when a's session has timed out. The store does not contain what a had
// begun and not committed.
func TestALeaderThatIsKilled(t *testing.T) {
	s := begin(t, short)
	s.enter(500)
	s.Await("a to pay", func() bool { return s.paidBy(s.a) > 0 })
	s.a.signal(syscall.SIGKILL)
	zktest.AwaitChan(s.Zoo, "a to be dead", s.a.ended)
	s.Await("b to lead", s.b.leads)
	s.awaitAllPaid()
	s.isRight()
	require.Positive(t, s.paidBy(s.b), "what a has left to b")
	s.b.endsWell()
}

// The paused holder. The leader is paused between its check of the hold and its write. The store is busy at
// that time, because another client writes. When b has paid, a resumes. Its write is late, and the store
// refuses it.
func TestALeaderThatIsStoppedBeforeItsWrite(t *testing.T) {
	s := begin(t, short)
	free := s.busy()
	s.Await("a to be about to write", func() bool { return s.a.metric("payments_in_progress") == 1 })
	s.a.stop()
	before := s.paidBy(s.a)
	free()

	s.Await("b to lead", s.b.leads)
	s.awaitAllPaid()
	s.isRight()
	require.Equal(t, before, s.paidBy(s.a), "payments of a while it is stopped")

	s.a.signal(syscall.SIGCONT)
	s.Await("a to write", func() bool { return s.a.metric("payments_in_progress") == 0 })
	s.isRight()
	require.EqualValues(t, 1, s.a.metric(`payments_total{result="refused"}`), "writes of a that the store has refused")

	s.Await("a to wait for its turn", func() bool { return s.a.metric("zklock_waiting") == 1 })
	s.b.endsWell()
	s.Await("a to lead again", s.a.leads)
	s.a.takes(100)
	s.awaitAllPaid()
	s.isRight()
	s.a.endsWell()
}

// A late write that arrives before the new leader has given the store its token is accepted. So the new
// leader gives its token first, and then reads. Otherwise it would pay that invoice again.
func TestALateWriteBeforeTheNewLeaderReads(t *testing.T) {
	s := begin(t, short)
	free := s.busy()
	s.Await("a to be about to write", func() bool { return s.a.metric("payments_in_progress") == 1 })
	s.a.stop()
	s.Await("b to have the lock", s.b.leads)
	s.b.stop()
	before := s.paidBy(s.a)

	s.a.signal(syscall.SIGCONT)
	free()
	s.Await("a to write", func() bool { return s.paidBy(s.a) > before })
	s.b.signal(syscall.SIGCONT)
	s.awaitAllPaid()
	s.isRight()
	s.a.endsWell()
	s.b.endsWell()
}

// The leader's write fails, because another client writes to the store for longer than the leader waits. The
// leader releases the lock, and b continues.
func TestALeaderWhosePaymentFails(t *testing.T) {
	s := begin(t, beyond)
	free := s.busy()
	s.Await("a's payment to fail", func() bool { return s.a.metric(`payments_total{result="failed"}`) == 1 })
	free()
	s.Await("b to lead", s.b.leads)
	s.awaitAllPaid()
	s.isRight()
	require.Positive(t, s.paidBy(s.b), "what a has left to b")
	require.Contains(t, s.a.said.String(), "the campaign has ended")
	s.a.endsWell()
	s.b.endsWell()
}

// busy adds invoices, and begins to write to the store while some of them are not paid yet. Until free is
// called, no other write to the store succeeds. Reads do.
func (s *story) busy() (free func()) {
	s.t.Helper()
	for {
		s.enter(3)
		tx, err := s.db.BeginTx(s.Ctx, nil)
		require.NoError(s.t, err)
		var left int
		require.NoError(s.t, tx.QueryRow(`SELECT count(*) FROM invoices WHERE paid = 0`).Scan(&left))
		if left > 0 {
			return func() { require.NoError(s.t, tx.Rollback()) }
		}
		require.NoError(s.t, tx.Rollback())
	}
}

var server = regexp.MustCompile(`the ZooKeeper server is (\S+)`)

// server returns the ZooKeeper server to which a replica is connected, or "" if the replica is not ready.
func (p *child) server() string {
	_, text := p.ask("/readyz")
	if found := server.FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return ""
}

// The server to which the leader is connected crashes. The leader continues with the same hold.
func TestAServerThatDies(t *testing.T) {
	s := begin(t, long)
	s.a.takes(100)
	s.awaitAllPaid()
	at := s.a.server()
	var dead *zkserver.Peer
	for _, m := range s.ensemble.Members {
		if m.Addr == at {
			dead = m
		}
	}
	require.NotNil(t, dead, "a is connected to %q", at)
	s.kill(dead)

	s.b.takes(200)
	s.Await("a to be connected to another server", func() bool { return s.a.server() != "" && s.a.server() != at })
	end := s.a.leaseEnd()
	s.Await("a majority to renew a's lease", func() bool { return s.a.leaseEnd().Sub(end) > time.Second })
	s.a.takes(300)
	s.awaitAllPaid()
	s.isRight()
	require.EqualValues(t, 3, s.paidBy(s.a))
	require.EqualValues(t, 1, s.number(`SELECT count(DISTINCT token) FROM payments`), "tokens")
	require.EqualValues(t, 1, s.a.metric("zklock_taken_total"), "a's holds")
	s.a.endsWell()
	s.Await("b to lead", s.b.leads)
	s.b.endsWell()
}

// kill kills servers. They run again after restart, or after the test.
func (s *story) kill(servers ...*zkserver.Peer) (restart func()) {
	s.t.Helper()
	for _, server := range servers {
		require.NoError(s.t, server.Kill())
	}
	restart = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), zktest.Patience)
		defer cancel()
		require.NoError(s.t, zkserver.StartAgain(ctx, servers))
	})
	s.t.Cleanup(restart)
	return restart
}

// All servers are down. No replica is ready, and none leads, but both run, and take invoices. When the
// servers run again, these invoices are paid.
func TestZooKeeperIsAway(t *testing.T) {
	s := begin(t, short)
	s.a.takes(100)
	s.awaitAllPaid()
	require.True(t, s.a.isReady() && s.b.isReady())

	restart := s.kill(s.ensemble.Members...)
	for _, p := range []*child{s.a, s.b} {
		s.Await(p.name+" to be not ready", func() bool { return !p.isReady() })
		status, text := p.ask("/readyz")
		require.Equal(t, http.StatusServiceUnavailable, status, text)
		require.Contains(t, text, "no session with ZooKeeper")
		status, _ = p.ask("/healthz")
		require.Equal(t, http.StatusOK, status, "it lives")
	}
	s.Await("a to be notified", func() bool { return s.a.metric(`zklock_lost_total{reason="lease over"}`) == 1 })
	s.Await("a to stop", func() bool { return s.a.metric("zklock_holds") == 0 })
	require.Zero(t, s.a.metric("zklock_connected"))
	s.a.takes(200)
	s.b.takes(300)

	restart()
	for _, p := range []*child{s.a, s.b} {
		s.Await(p.name+" to be ready again", p.isReady)
	}
	s.awaitAllPaid()
	s.isRight()
	require.EqualValues(t, 1, s.number(`SELECT count(*) FROM payments WHERE token = (SELECT min(token) FROM payments)`),
		"payments of the hold that was lost")
	require.Contains(t, s.a.said.String(), `the lead is lost reason="lease over"`)
	s.a.endsWell()
	s.b.endsWell()
}

// This tests the store alone: it refuses a token that is smaller than the greatest so far, and changes
// nothing.
func TestTheStoreRefusesASmallerToken(t *testing.T) {
	ctx := t.Context()
	s, err := openStore(ctx, filepath.Join(t.TempDir(), "payments.db"))
	require.NoError(t, err)
	defer s.close()
	id, err := s.enter(ctx, 100)
	require.NoError(t, err)
	old, next := leader{"a", 5}, leader{"b", 6}
	require.NoError(t, s.takeOver(ctx, old))
	require.NoError(t, s.takeOver(ctx, next))
	require.ErrorIs(t, s.pay(ctx, old, invoice{id, 100}), errRefused)
	require.ErrorIs(t, s.takeOver(ctx, old), errRefused)
	unpaid, err := s.unpaid(ctx)
	require.NoError(t, err)
	require.Equal(t, []invoice{{id, 100}}, unpaid)
	name, err := s.lastLeader(ctx)
	require.NoError(t, err)
	require.Equal(t, "b", name)
	require.NoError(t, s.pay(ctx, next, invoice{id, 100}))
	require.NoError(t, s.pay(ctx, next, invoice{id, 100}), "the same token again")
}

// sample is a line of Prometheus' text format.
var sample = regexp.MustCompile(`^([a-z_]+)(\{[a-z]+="[a-z ]+"\})? [0-9.e+-]+$`)

// ruleOfOperations is a name of a metric in a rule of operations.md.
var ruleOfOperations = regexp.MustCompile(`(?m)^ +expr: .*?\b(zklock_[a-z_]+)`)

// Each number of /metrics has its type, and a name like those of Prometheus. The rules of operations.md name numbers
// that are there. A bad request gets status 400.
func TestWhatAReplicaAnswers(t *testing.T) {
	s := begin(t, beyond)
	status, text := s.a.ask("/metrics")
	require.Equal(t, http.StatusOK, status)
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		found := sample.FindStringSubmatch(strings.TrimSpace(line))
		require.NotNil(t, found, line)
		require.Contains(t, text, fmt.Sprintf("# TYPE %s ", found[1]))
	}
	page, err := os.ReadFile("../operations.md")
	require.NoError(t, err)
	rules := ruleOfOperations.FindAllSubmatch(page, -1)
	require.Len(t, rules, strings.Count(string(page), "- alert: "), "rules with a number")
	for _, rule := range rules {
		require.Regexp(t, fmt.Sprintf(`(?m)^%s(\{| )`, rule[1]), text)
	}
	require.EqualValues(t, 1, s.a.metric("zklock_connected"))
	require.Positive(t, s.a.metric("zklock_longest_hold_seconds"))
	require.Positive(t, s.b.metric("zklock_longest_wait_seconds"))
	for _, p := range []*child{s.a, s.b} {
		status, text = p.ask("/readyz")
		require.Equal(t, http.StatusOK, status, text)
		require.Contains(t, text, fmt.Sprintf("this is %s, the last to lead is a,", p.name))
	}
	for _, cents := range []string{"", "0", "-5", "1.5", "much"} {
		answer, err := client.PostForm(s.b.url+"/invoices", url.Values{"cents": {cents}})
		require.NoError(t, err)
		answer.Body.Close()
		require.Equal(t, http.StatusBadRequest, answer.StatusCode, cents)
	}
	require.Zero(t, s.number(`SELECT count(*) FROM invoices`))
	s.a.endsWell()
	s.b.endsWell()
}
