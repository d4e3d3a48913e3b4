package main

import (
	"fmt"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
)

// A progress tells on stderr what is going on: in a terminal in one line that moves, and
// else in a plain line now and then.
type progress struct {
	bar   *progressbar.ProgressBar // nil: it is no terminal
	last  time.Time
	quiet bool // the table stands: no plain line comes after it
}

// nowAndThen is how often there is a plain line.
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

// say tells what is going on, and how many of all jobs are done.
func (p *progress) say(doing string, done, all int) {
	if p.bar != nil {
		p.bar.ChangeMax(max(all, 1))
		p.bar.Describe(fmt.Sprintf("%-50.50s", doing))
		_ = p.bar.Set(min(done, max(all-1, 0))) // what it cannot write, nobody reads
		return
	}
	if !p.quiet && time.Since(p.last) >= nowAndThen {
		p.last = time.Now()
		fmt.Fprintln(os.Stderr, doing)
	}
}

// note is a line that stays.
func (p *progress) note(format string, args ...any) {
	p.end()
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	p.last = time.Time{}
}

// end takes the line that moves away.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
