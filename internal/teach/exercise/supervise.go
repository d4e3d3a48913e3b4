package exercise

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"zklock/internal/check/zktest"
	"zklock/internal/property"
)

// A panic in a goroutine of the learner's, or os.Exit, ends the process, and with it all
// that was being asked. So there are two processes: the one that go test has started lets
// another one do the asking, which keeps a journal. If that one dies, the first asks again
// for each property that was being asked, in a process of its own, and tells which of them
// dies first. A debugger's process does all itself.

// journalVariable names the file of the journal, and againVariable is set where a property
// is asked again after a death.
const (
	journalVariable = "ZKLOCK_JOURNAL"
	againVariable   = "ZKLOCK_ASKED_AGAIN"
)

func askedAgain() bool { return os.Getenv(againVariable) != "" }

// The words of the journal. A name comes behind each.
const (
	begins = "begins "
	ends   = "ends "
)

// inJournal adds a line to the journal, if there is one.
func inJournal(word, name string) {
	journal, err := os.OpenFile(os.Getenv(journalVariable), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return // then a death is not explained
	}
	fmt.Fprintln(journal, word+name)
	_ = journal.Close()
}

// wereAsked are the names that a journal has begun, and not ended.
func wereAsked(journal string) []string {
	open := map[string]bool{}
	for line := range strings.Lines(journal) {
		line = strings.TrimSpace(line)
		if name, begun := strings.CutPrefix(line, begins); begun {
			open[name] = true
		}
		if name, ended := strings.CutPrefix(line, ends); ended {
			delete(open, name)
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
	first, err := process(context.Background(), os.Stdout, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Fprint(os.Stderr, first.complaints)
	if len(first.asked) > 0 {
		explain(first)
	} else {
		fmt.Fprint(os.Stderr, first.crash)
	}
	if first.code != 0 {
		isNotDone()
	}
	return first.code
}

// An end is how a process has ended that was to ask.
type end struct {
	code       int
	asked      []string // what was being asked, if it died
	complaints string   // what it has printed to its standard error,
	crash      string   // and what Go has of a panic
}

// crashes is where Go begins to print of a panic.
var crashes = regexp.MustCompile(`(?m)^(panic|fatal error):\W`)

// process lets another process ask, and waits until it ends.
func process(ctx context.Context, out io.Writer, args []string, env ...string) (e end, err error) {
	program, err := os.Executable()
	if err != nil {
		return e, err
	}
	journal, err := os.CreateTemp("", "zklock-journal-")
	if err != nil {
		return e, err
	}
	defer os.Remove(journal.Name())
	defer journal.Close()

	var complaints bytes.Buffer
	asking := exec.CommandContext(ctx, program, args...)
	asking.Dir = here
	asking.Env = append(append(os.Environ(), journalVariable+"="+journal.Name()), env...)
	asking.Stdin, asking.Stdout, asking.Stderr = os.Stdin, out, &complaints
	err = asking.Run()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		return e, err
	}
	e.code = asking.ProcessState.ExitCode()
	if e.code < 0 { // it was killed
		e.code = 1
	}
	e.complaints = complaints.String()
	if at := crashes.FindStringIndex(e.complaints); at != nil {
		e.complaints, e.crash = e.complaints[:at[0]], e.complaints[at[0]:]
	}
	written, err := io.ReadAll(journal)
	e.asked = wereAsked(string(written))
	return e, err
}

// seen is what the process died of.
func (e end) seen() string {
	if e.crash == "" {
		return fmt.Sprintf("the process ended with code %d, as by os.Exit", e.code)
	}
	why, _, _ := strings.Cut(e.crash, "\n")
	return withPlace(why, e.crash)
}

// explain asks again for what was being asked when the process died, and tells of the
// first that dies again.
func explain(first end) {
	server, err := zktest.Shared()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	defer server.Stop()
	at := []string{againVariable + "=1", "ZK_BACKEND=existing", "ZK_SERVERS=" + strings.Join(server.Servers(), ",")}
	ctx, enough := context.WithCancel(context.Background())
	defer enough()
	ended := make(chan end)
	for _, name := range first.asked {
		go func() {
			var printed strings.Builder
			args := []string{"-test.paniconexit0", "-test.timeout=1m", "-test.run=" + Run(name)}
			again, _ := process(ctx, &printed, args, at...) // with an error, nothing was asked
			again.complaints = strings.TrimSpace(printed.String() + again.complaints)
			ended <- again
		}()
	}
	var death end
	for range first.asked {
		again := <-ended
		if len(death.asked) == 0 && len(again.asked) > 0 {
			death = again
			enough()
		}
	}
	if len(death.asked) == 0 {
		told(os.Stdout, first.seen(), question(nil, first.seen()))
		fmt.Fprintf(os.Stdout, "while these were asked: %s\n", strings.Join(first.asked, "; "))
		return
	}
	name := death.asked[0]
	fmt.Printf("--- FAIL: TestLock/%s\n", underscored(name))
	told(os.Stdout, death.seen(), question(nil, death.seen()))
	if death.complaints != "" {
		fmt.Fprintf(os.Stdout, "printed: %s\n", death.complaints)
	}
	keepAnswer(Answer{name, string(property.No), death.seen()})
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
	if len(r.Answers) == 0 || r.Fails() {
		return
	}
	r.Version = ""
	_ = r.Keep(here)
}
