package exercise

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"zklock/internal/check/zktest"
	"zklock/internal/property"
)

// calls are those to the learner's lock in one story.
type calls struct {
	mu     sync.Mutex
	inside int       // calls that have begun, and not come back
	last   time.Time // when one began or came back
	said   string    // by the first that panicked
}

func (c *calls) panicked() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.said
}

func (c *calls) begins() { c.changes(+1) }
func (c *calls) ends()   { c.changes(-1) }

func (c *calls) changes(inside int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inside += inside
	c.last = time.Now()
}

// areQuiet tells whether somebody waits for a call to come back, and for so long no call
// has begun or come back.
func (c *calls) areQuiet(long time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inside > 0 && time.Since(c.last) > long
}

// whenQuiet calls hangs once the calls are quiet.
func (c *calls) whenQuiet(long time.Duration, hangs func()) (stop func()) {
	ended := make(chan struct{})
	look := time.NewTicker(50 * time.Millisecond)
	go func() {
		defer look.Stop()
		for {
			select {
			case <-ended:
				return
			case <-look.C:
			}
			if c.areQuiet(long) {
				hangs()
				return
			}
		}
	}()
	return func() { close(ended) }
}

// of is the subject, whose calls are noted, and return an error when they panic.
func (c *calls) of(subject property.Subject) property.Subject {
	ways := subject.Ways
	subject.Ways = func(s zktest.Session, path string) (write zktest.Way, read *zktest.Way) {
		write, read = ways(s, path)
		write = c.inWay(write)
		if read != nil {
			reading := c.inWay(*read)
			read = &reading
		}
		return write, read
	}
	return subject
}

func (c *calls) inWay(w zktest.Way) zktest.Way {
	lock, unlock, try := w.Lock, w.Unlock, w.TryLock
	w.Lock = func(ctx context.Context) (held context.Context, err error) {
		c.begins()
		defer c.ends()
		defer c.caught(&err)
		return lock(ctx)
	}
	w.Unlock = func(held context.Context) (err error) {
		c.begins()
		defer c.ends()
		defer c.caught(&err)
		return unlock(held)
	}
	if try != nil {
		w.TryLock = func(ctx context.Context, wait time.Duration) (held context.Context, err error) {
			c.begins()
			defer c.ends()
			defer c.caught(&err)
			return try(ctx, wait)
		}
	}
	return w
}

// caught makes a panic an error. It notes where in the learner's files it has happened.
func (c *calls) caught(err *error) {
	broken := recover()
	if broken == nil {
		return
	}
	*err = fmt.Errorf("panic: %v", broken)
	said := withPlace((*err).Error(), string(debug.Stack()))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.said == ("") {
		c.said = said
	}
}

// withPlace adds to what was said of a crash where it was, if the stack has a line of the
// learner's own files.
func withPlace(said string, stack string) string {
	at := place(stack)
	if at == "" {
		return said
	}
	return fmt.Sprintf("%v, at %v", said, at)
}

// place is the first line of a stack that is in the learner's own files.
func place(stack string) string {
	for line := range strings.Lines(stack) {
		_, at, yours := strings.Cut(line, here+string(filepath.Separator))
		if !yours || strings.Contains(at, "_test.go") {
			continue
		}
		at, _, _ = strings.Cut(at, " +0x")
		return strings.TrimSpace(at)
	}
	return ""
}
