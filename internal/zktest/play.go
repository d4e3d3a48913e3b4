package zktest

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// Play tells a story outside of tests: tell gets a T, and Play returns what the
// story failed with, once all that it has set up is gone.
func Play(tell func(T)) error {
	p := play(tell)
	<-p.ended
	return p.failure()
}

// PlayUntil is Play of a story that may hang: it has to come to its end when ctx ends, and
// what it leaves behind is not waited for.
func PlayUntil(ctx context.Context, tell func(T)) error {
	began := time.Now()
	p := play(tell)
	select {
	case <-p.told:
		return p.failure()
	case <-ctx.Done():
	}
	select {
	case <-p.told:
		return p.failure()
	case <-time.After(2 * time.Second): // its waits should have ended it by now
		waited := time.Since(began).Round(time.Second)
		return fmt.Errorf("a call without a context, such as Unlock, has not come back within %v", waited)
	}
}

// player is the T of a story.
type player struct {
	told  chan struct{} // closed when the story has come to its end
	ended chan struct{} // closed when all is gone

	mu  sync.Mutex
	err error // the first

	cleanups
}

func play(tell func(T)) *player {
	p := &player{told: make(chan struct{}), ended: make(chan struct{})}
	go func() { // on a goroutine of its own, which FailNow ends
		defer close(p.ended)
		defer p.cleanUp()
		defer close(p.told)
		defer func() {
			if broken := recover(); broken != nil { // as by the lock that the story is told of
				p.Errorf("panic: %v\n%s", broken, debug.Stack())
			}
		}()
		tell(p)
	}()
	return p
}

func (p *player) Helper()  {}
func (p *player) FailNow() { runtime.Goexit() }

func (p *player) Errorf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

func (p *player) Fatalf(format string, args ...any) {
	p.Errorf(format, args...)
	p.FailNow()
}

func (p *player) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// cleanups are what is to be done at the end, the last one first.
type cleanups struct {
	mu  sync.Mutex
	all []func()
}

func (c *cleanups) Cleanup(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, f)
}

// cleanUp does them, and forgets them and all that they hold on to.
func (c *cleanups) cleanUp() {
	c.mu.Lock()
	all := c.all
	c.all = nil
	c.mu.Unlock()
	for _, f := range slices.Backward(all) {
		f()
	}
}

// A Section of a story is a T that may come to its end before the story does.
type Section struct {
	T
	own cleanups
}

// NewSection begins a section of the story. It ends with the story at the latest.
func NewSection(t T) *Section {
	p := &Section{T: t}
	t.Cleanup(p.End)
	return p
}

// Cleanup is for the end of the section.
func (p *Section) Cleanup(f func()) { p.own.Cleanup(f) }

// End returns when all is gone that the section has set up. A second End does nothing.
func (p *Section) End() { p.own.cleanUp() }
