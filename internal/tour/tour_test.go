package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"zklock/internal/chapter"
	"zklock/internal/lockcheck"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) {
	zktest.Child("tour", func(_, args []string) { os.Exit(run(args)) })
	zktest.Main(m)
}

const readme = "../../README.md"

var largest = 1000 // crowd

func silent(string, ...any) {}

// TestREADME measures what the tour measures, and holds the tables in README.md
// against it.
func TestREADME(t *testing.T) {
	t.Parallel()
	server := shared(t)
	crowds := []int{10, largest}
	score := Score{Origin: server.Origin, Began: time.Now(), Crowds: crowds, Columns: columns, Numbers: make([]Numbers, len(columns))}
	var all sync.WaitGroup
	for i, c := range columns {
		all.Go(func() {
			n, err := c.measure(t.Context(), server, crowds[:1], silent)
			if err != nil {
				t.Error(err)
			}
			score.Numbers[i] = n
		})
	}
	all.Wait()
	for i, c := range columns { // one after the other: they do keep the machine busy
		n := &score.Numbers[i]
		if t.Failed() || n.Crowds[0].Polls {
			continue
		}
		crowd, err := measureCrowd(server, c.subject, largest, func(string) {})
		if err != nil {
			t.Errorf("%s, %d clients: %v", n.Subject, largest, err)
		}
		n.Crowds = append(n.Crowds, crowd)
	}
	if t.Failed() {
		return
	}
	results := check(server, subjects(columns), lockcheck.Properties, silent)
	for i := range columns {
		for _, p := range promises {
			score.Numbers[i].Answers = append(score.Numbers[i].Answers, results[i][slices.Index(lockcheck.Properties, p)])
		}
	}
	sameNumbers(t, score)
	sameAnswers(t, results)
}

// sameNumbers tests what is the same in every run, and README.md's scoreboard.
func sameNumbers(t *testing.T, score Score) {
	for i, want := range []struct {
		alone         int
		polls         bool
		arrival, herd func(waiting int) int // notifications
	}{
		{alone: 2, polls: true},
		{alone: 3, polls: true},
		{alone: 3, arrival: everyone, herd: everyone},
		{alone: 3, arrival: nobody, herd: one},
		{alone: 3, arrival: nobody, herd: one},
		{alone: 3, arrival: nobody, herd: one},
		{alone: 3, arrival: nobody, herd: one},
	} {
		n := score.Numbers[i]
		if got := n.Alone.All(); got != want.alone {
			t.Errorf("%s alone: %d requests to lock and unlock, want %d: %v", n.Subject, got, want.alone, n.Alone)
		}
		for _, c := range n.Crowds {
			if c.Polls != want.polls || (c.Waiting.All() > 0) != want.polls {
				t.Errorf("%s, %d waiters: polls %v, and %d requests in %v; want polling %v", n.Subject, c.Waiters, c.Polls, c.Waiting.All(), Window, want.polls)
			}
			if want.polls {
				continue
			}
			if got, want := c.Arrival.Notifications, want.arrival(c.Waiters); got != want {
				t.Errorf("%s: an arrival sent %d notifications to %d waiters, want %d", n.Subject, got, c.Waiters, want)
			}
			for _, r := range c.Releases {
				if got, want := r.Waiters.Notifications, want.herd(c.Waiters); got != want || r.Requests != 1+want {
					t.Errorf("%s: a release sent %d notifications to %d waiters, and took %d requests; want %d, and one delete and as many lists", n.Subject, got, c.Waiters, r.Requests, want)
				}
			}
		}
	}
	if w := writes(score.Numbers[0].Crowds[0].Waiting); w != score.Numbers[0].Crowds[0].Waiting.All() {
		t.Errorf("step 1: only %d of its requests are writes: %v", w, score.Numbers[0].Crowds[0].Waiting)
	}

	for _, g := range score.groups() {
		if strings.Contains(g.title, "100 ") || g.title == "does it keep its promises?" {
			continue // README.md has the matrix
		}
		lines, cells := []string{"| **" + g.title + "** |" + strings.Repeat(" |", len(columns))}, []any{}
		for _, r := range g.rows {
			lines = append(lines, "| "+r.label+" |"+strings.Repeat(" %v |", len(columns)))
			cells = append(cells, r.cells...)
		}
		chapter.SaysIn(t, readme, strings.Join(lines, "\n"), cells...)
	}
	fits(t, score.print)
}

func everyone(waiting int) int { return waiting }
func one(int) int              { return 1 }
func nobody(int) int           { return 0 }

// sameAnswers tests README.md's matrix.
func sameAnswers(t *testing.T, results [][]lockcheck.Result) {
	for j, p := range lockcheck.Properties {
		line := "| " + p.Name + " |"
		for i := range columns {
			line += " " + string(results[i][j].Verdict) + " |"
			if results[i][j].Verdict == lockcheck.Stuck {
				t.Errorf("%s: %v", columns[i].subject.Name, results[i][j])
			}
		}
		chapter.SaysIn(t, readme, "%s", line)
	}
	fits(t, func(w io.Writer) { printMatrix(w, lockcheck.Properties, columns, results) })
}

// fits tests that what is printed fits the screen.
func fits(t *testing.T, print func(io.Writer)) {
	t.Helper()
	var out bytes.Buffer
	print(&out)
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(strings.TrimSpace(line)); n > screen {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

func shared(t *testing.T) *zkserver.Server {
	t.Helper()
	server, err := zktest.Shared()
	if err != nil {
		t.Fatal(err)
	}
	return server
}

// tourProcess is this test binary in the part of the tour.
func tourProcess(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(append(os.Environ(), "ZKTEST_CHILD=tour", "PAGE="+t.TempDir()+"/tour.html"), env...)
	stdin, err := cmd.StdinPipe() // a child ends when this does
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stdin.Close() })
	return cmd
}

func TestTheTableIsAloneOnStdout(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, `(?s)^zklock, .*step 4 +zk\.Lock\n.*the holder releases, 10 wait\n  notifications +1 +1\n.*The Go client's own lock`},
		{[]string{"matrix"}, `(?s)^Which lock .*one holder at a time +✓ +✓\n.*step 4, chain: what was seen\n.*✗ the holder may lock again: A holds the lock and waits for it`},
	} {
		t.Run(strings.Join(append(test.args, "tour"), " "), func(t *testing.T) {
			t.Parallel()
			cmd := tourProcess(t, []string{"STEPS=04", "WAITERS=10", "ZK_BACKEND=", "ZK_SERVERS=" + shared(t).Addr}, test.args...)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			stdout, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, &stderr)
			}
			if !regexp.MustCompile(test.want).Match(stdout) {
				t.Errorf("want %s, got\n%s", test.want, stdout)
			}
			if !strings.Contains(stderr.String(), "looking for a ZooKeeper\n") {
				t.Errorf("no progress on stderr: %q", &stderr)
			}
		})
	}
}

func TestTourSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		env, args []string
		want      string
	}{
		{[]string{"ZK_BACKEND=", "ZK_SERVERS=127.0.0.1:1"}, nil, `no ZooKeeper was found:\n +existing .*refused\n +repair it with: `},
		{[]string{"STEPS=3,9"}, nil, `STEPS=3,9: there is no step "9"`},
		{[]string{"WAITERS=many"}, nil, `WAITERS=many: .* a number`},
		{[]string{"WAITERS=9"}, nil, `WAITERS=9: .* at least 10`},
		{nil, []string{"matrxi"}, `usage: tour \[matrix\], and not matrxi`},
	} {
		cmd := tourProcess(t, test.env, test.args...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		stdout, err := cmd.Output()
		if code := cmd.ProcessState.ExitCode(); code != 1 {
			t.Errorf("%v %v: exit code %d, %v", test.env, test.args, code, err)
		}
		if len(stdout) > 0 || !regexp.MustCompile(test.want).Match(stderr.Bytes()) {
			t.Errorf("%v %v: want %q, got %q and on stdout %q", test.env, test.args, test.want, &stderr, stdout)
		}
	}
}

// Ctrl-C ends the tour, and its own server with it.
func TestCtrlCEndsTheServer(t *testing.T) {
	t.Parallel()
	address := interrupted(t, "ZK_SERVERS=", "ZK_BACKEND=")
	if conn, err := net.DialTimeout("tcp", address, time.Second); err == nil {
		conn.Close()
		t.Errorf("the server on %s lives on", address)
	}
}

// On somebody else's server, Ctrl-C leaves nothing behind.
func TestCtrlCLeavesNothingOnTheServer(t *testing.T) {
	if os.Getenv("ZK_SERVERS") == "" {
		t.Parallel()
	} else { // not on this one: others are on it
		t.Setenv("ZK_SERVERS", "")
		t.Setenv("ZK_BACKEND", "")
	}
	server, err := zkserver.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	z := zktest.NewOn(t, server)
	before := z.Names("/")
	interrupted(t, "ZK_SERVERS="+server.Addr, "ZK_BACKEND=")
	if after := z.Names("/"); !reflect.DeepEqual(before, after) {
		t.Errorf("znodes before %v, after %v", before, after)
	}
}

// interrupted starts the tour, presses Ctrl-C while a crowd waits, and returns
// the address of the tour's server.
func interrupted(t *testing.T, env ...string) (address string) {
	t.Helper()
	cmd := tourProcess(t, append(env, "WAITERS=10"))
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(stderr); lines.Scan() && !strings.Contains(lines.Text(), "10 clients"); {
		if found := regexp.MustCompile(`\S+:\d+$`).FindString(lines.Text()); found != "" {
			address = found
		}
	}
	if address == "" {
		t.Error("the tour has not told its server's address")
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(stderr)
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Errorf("it ended with %v, want exit code 130", err)
	}
	if !strings.HasSuffix(string(rest), "stopped\n") {
		t.Errorf("its last words: %q", rest)
	}
	return address
}

func TestCrowds(t *testing.T) {
	for largest, want := range map[string][]int{
		"10": {10}, "50": {10, 50}, "100": {10, 100}, "1000": {10, 100, 1000},
	} {
		if got, err := crowdsUpTo(largest); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("WAITERS=%s: %v, %v; want %v", largest, got, err, want)
		}
	}
	if got := number(1234567); got != "1,234,567" {
		t.Errorf("1234567 is written %s", got)
	}
}
