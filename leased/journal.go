package leased

import (
	"context"
	"log/slog"
	"sync/atomic"
)

// journal writes lines to the caller's logger, on a goroutine of its own. A logger may be slow, or block:
// neither a ping nor Close waits for it. Lines for which it is too slow are dropped, and counted.
type journal struct {
	log     *slog.Logger
	lines   chan entry
	leftOut atomic.Int64
}

type entry struct {
	level slog.Level
	says  string
	args  []any
}

// mostLines is how many lines can wait for the logger.
const mostLines = 1000

func newJournal(log *slog.Logger) *journal {
	return &journal{log: log, lines: make(chan entry, mostLines)}
}

// say never blocks.
func (j *journal) say(level slog.Level, says string, args ...any) {
	select {
	case j.lines <- entry{level, says, args}:
	default:
		j.leftOut.Add(1)
	}
}

// keep writes the lines to the logger until the session is closed, and then those that still wait.
func (j *journal) keep(closed <-chan struct{}) {
	for {
		select {
		case e := <-j.lines:
			j.write(e)
		case <-closed:
			for len(j.lines) > 0 {
				j.write(<-j.lines)
			}
			return
		}
	}
}

func (j *journal) write(e entry) {
	if n := j.leftOut.Swap(0); n > 0 {
		j.log.Warn("leased: the logger is too slow, and lines were left out", "lines", n)
	}
	j.log.Log(context.Background(), e.level, e.says, e.args...)
}
