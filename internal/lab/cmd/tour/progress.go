package main

import (
	"fmt"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
)

// A progress shows on stderr what the command does: in a terminal as one line that it updates, and
// elsewhere as a plain line now and then.
type progress struct {
	bar   *progressbar.ProgressBar // nil: stderr is not a terminal
	last  time.Time
	quiet bool // the scoreboard is printed, and no plain line may follow it
}

// nowAndThen is the shortest time between two plain lines.
const nowAndThen = 10 * time.Second

func newProgress() *progress {
	info, err := os.Stderr.Stat()
	isTerminal := err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
	if !isTerminal {
		return &progress{}
	}
	return &progress{bar: progressbar.NewOptions(1,
		progressbar.OptionSetWriter(os.Stderr),
		progressbar.OptionSetWidth(20),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(false),
	)}
}

// say shows what the command does, and how many of all jobs are done.
func (p *progress) say(doing string, done, all int) {
	if p.bar != nil {
		p.bar.ChangeMax(max(all, 1))
		p.bar.Describe(fmt.Sprintf("%-50.50s", doing))
		_ = p.bar.Set(min(done, max(all-1, 0))) // the user does not need a line that cannot be written
		return
	}
	if !p.quiet && time.Since(p.last) >= nowAndThen {
		p.last = time.Now()
		fmt.Fprintln(os.Stderr, doing)
	}
}

// note prints a line that stays.
func (p *progress) note(format string, args ...any) {
	p.end()
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	p.last = time.Time{}
}

// end removes the line that say updates.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
