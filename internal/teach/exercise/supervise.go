package exercise

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"zklock/internal/check/lockcheck"
	"zklock/internal/check/zktest"
	"zklock/internal/upkeep/words"
)

// A panic in a goroutine of the learner's, or os.Exit, ends the process, and with it all
// that was being asked. So there are two processes: the one that go test has started lets
// another one do the asking, which keeps a journal. If that one dies, the first asks again
// for each property that was being asked, in a process of its own, and tells which of them
// die. A debugger's process does all itself.

// journalVariable names the file of the journal, and againVariable is set where a property
// is asked again after a death.
const (
	journalVariable = "ZKLOCK_JOURNAL"
	againVariable   = "ZKLOCK_ASKED_AGAIN"
)

func askedAgain() bool { return os.Getenv(againVariable) != "" }

// The words of the journal. A name comes behind the first two.
const (
	begins   = "begins"
	ends     = "ends"
	allEnded = "over"
)

var writingJournal sync.Mutex

// inJournal adds a line to the journal, if there is one.
func inJournal(word, name string) {
	file := os.Getenv(journalVariable)
	if file == "" {
		return
	}
	writingJournal.Lock()
	defer writingJournal.Unlock()
	journal, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return // then a death is not explained
	}
	fmt.Fprintf(journal, "%s %s\n", word, name)
	_ = journal.Close()
}

// wereAsked are the names that a journal has begun, and not ended.
func wereAsked(journal []byte) []string {
	open := map[string]bool{}
	for line := range strings.Lines(string(journal)) {
		line = strings.TrimSpace(line)
		if name, begun := strings.CutPrefix(line, begins+" "); begun {
			open[name] = true
		}
		if name, ended := strings.CutPrefix(line, ends+" "); ended {
			delete(open, name)
		}
		if line == allEnded {
			clear(open)
		}
	}
	return slices.Sorted(maps.Keys(open))
}

// isSupervised tells whether another process is to do the asking: go test has started
// this one, and no debugger, and it is not that process itself.
func isSupervised() bool {
	flag.Parse()
	byGoTest := flag.Lookup("test.paniconexit0").Value.String() == "true"
	return byGoTest && os.Getenv(journalVariable) == ""
}

// supervise lets another process do what this one was started for. It returns its exit code.
func supervise() (code int) {
	dir, err := os.MkdirTemp("", "zklock-exercise-")
	if err != nil {
		words.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	first := asking{journal: filepath.Join(dir, "journal"), out: os.Stdout, besides: os.Stderr}
	died, err := first.run(context.Background(), os.Args[1:])
	if err != nil {
		words.Fprintln(os.Stderr, err)
		return 1
	}
	if len(died) > 0 {
		explain(dir, died, first)
	} else if len(first.crash) > 0 {
		os.Stderr.Write(first.crash)
	}
	if first.code != 0 {
		isNotDone()
	}
	return first.code
}

// An asking is one run of the process that asks.
type asking struct {
	journal      string
	out, besides io.Writer // for its standard output, and for its standard error without a crash

	code  int
	crash []byte // what Go has printed of a panic
}

// run lets the process run. It returns what was being asked when it died.
func (a *asking) run(ctx context.Context, args []string, env ...string) (died []string, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	process := exec.CommandContext(ctx, program, args...)
	process.Dir = here
	process.Env = append(append(os.Environ(), journalVariable+"="+a.journal), env...)
	process.Stdin, process.Stdout = os.Stdin, a.out
	complaints, err := process.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := process.Start(); err != nil {
		return nil, err
	}
	a.read(complaints)
	err = process.Wait()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		return nil, err
	}
	a.code = process.ProcessState.ExitCode()
	if a.code < 0 { // it was killed
		a.code = 1
	}
	journal, err := os.ReadFile(a.journal)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // nothing was asked
	}
	return wereAsked(journal), err
}

// crashes is the first line of what Go prints of a panic.
var crashes = regexp.MustCompile(`^(panic|fatal error):\W`)

// read passes on what the process says to people, and keeps a crash.
func (a *asking) read(complaints io.Reader) {
	lines := bufio.NewReader(complaints)
	for {
		line, err := lines.ReadBytes('\n')
		if crashes.Match(line) || len(a.crash) > 0 {
			a.crash = append(a.crash, line...)
		} else {
			_, _ = a.besides.Write(line)
		}
		if err != nil {
			return
		}
	}
}

// seen is what the process died of.
func (a *asking) seen() words.Text {
	if len(a.crash) == 0 {
		return words.Of("the process ended with code %d, as by os.Exit", a.code)
	}
	why, _, _ := strings.Cut(string(a.crash), "\n")
	if at := place(string(a.crash)); at != "" {
		return words.Of("%v, at %v", why, at)
	}
	return words.Whole(why)
}

// explain asks again for what was being asked when the process died, and tells of the
// first that dies again.
func explain(dir string, names []string, first asking) {
	server, err := zktest.Shared()
	if err != nil {
		words.Fprintln(os.Stderr, err)
		return
	}
	defer server.Stop()
	at := []string{againVariable + "=1", "ZK_BACKEND=existing", "ZK_SERVERS=" + strings.Join(server.Servers(), ",")}
	ctx, enough := context.WithCancel(context.Background())
	defer enough()
	type death struct {
		name    string
		seen    words.Text
		printed string
	}
	deaths := make(chan death, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() {
			var printed, complained bytes.Buffer
			a := asking{journal: filepath.Join(dir, fmt.Sprint(i)), out: &printed, besides: &complained}
			died, err := a.run(ctx, []string{"-test.paniconexit0", "-test.timeout=1m", "-test.run=" + Run(name)}, at...)
			if err != nil || len(died) == 0 || ctx.Err() != nil {
				return
			}
			deaths <- death{name, a.seen(), strings.TrimSpace(printed.String() + complained.String())}
			enough()
		})
	}
	all.Wait()
	close(deaths)
	died, again := <-deaths
	if !again {
		told(os.Stdout, first.seen(), question(nil, first.seen()))
		words.Fprintf(os.Stdout, "while these were asked: %s\n", strings.Join(names, "; "))
		return
	}
	fmt.Printf("--- FAIL: TestLock/%s\n", underscored(died.name))
	told(os.Stdout, died.seen, question(nil, died.seen))
	if died.printed != "" {
		words.Fprintf(os.Stdout, "printed: %s\n", died.printed)
	}
	keepAnswer(Answer{died.name, string(lockcheck.No), died.seen})
}

// keepAnswer keeps what this process has found, and not the one that asks.
func keepAnswer(a Answer) {
	yours, err := Yours(here)
	if err != nil {
		return
	}
	r := Recorded(here)
	r.isAbout(yours)
	r.answer(a)
	_ = r.Keep(here)
}

// isNotDone sees to it that a version whose test has failed is not taken for one that has
// all properties: a goroutine may be left behind, or a test of the learner's own may fail.
func isNotDone() {
	r := Recorded(here)
	lacks := func(a Answer) bool { return !a.holds() }
	if len(r.Answers) == 0 || slices.ContainsFunc(r.Answers, lacks) {
		return
	}
	r.Version = ""
	_ = r.Keep(here)
}
