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

// Tell runs a story outside of tests. It gives tell a T, and returns what the story failed with,
// once everything that the story has set up is cleaned up.
func Tell(tell func(T)) error {
	p := begin(tell)
	<-p.ended
	return p.failure()
}

// TellUntil is Tell for a story that may hang. The story must end when ctx ends, and TellUntil does
// not wait for what it leaves behind.
func TellUntil(ctx context.Context, tell func(T)) error {
	began := time.Now()
	p := begin(tell)
	select {
	case <-p.told:
		return p.failure()
	case <-ctx.Done():
	}
	select {
	case <-p.told:
		return p.failure()
	case <-time.After(2 * time.Second): // by now its waits should have ended
		waited := time.Since(began).Round(time.Second)
		return fmt.Errorf("a call without a context, such as Unlock, has not come back within %v", waited)
	}
}

// teller is the T of a story.
type teller struct {
	told  chan struct{} // closed when the story has ended
	ended chan struct{} // closed when everything is cleaned up

	mu  sync.Mutex
	err error // the first

	cleanups
}

func begin(tell func(T)) *teller {
	p := &teller{told: make(chan struct{}), ended: make(chan struct{})}
	go func() { // on a goroutine of its own, which FailNow ends
		defer close(p.ended)
		defer p.cleanUp()
		defer close(p.told)
		defer func() {
			if broken := recover(); broken != nil { // for example in the lock under test
				p.Errorf("panic: %v\n%s", broken, debug.Stack())
			}
		}()
		tell(p)
	}()
	return p
}

func (p *teller) Helper()  {}
func (p *teller) FailNow() { runtime.Goexit() }

func (p *teller) Errorf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

func (p *teller) Fatalf(format string, args ...any) {
	p.Errorf(format, args...)
	p.FailNow()
}

func (p *teller) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// cleanups are the functions to call at the end, the last one first.
type cleanups struct {
	mu  sync.Mutex
	all []func()
}

func (c *cleanups) Cleanup(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, f)
}

// cleanUp calls them, and drops them with everything that they refer to.
func (c *cleanups) cleanUp() {
	c.mu.Lock()
	all := c.all
	c.all = nil
	c.mu.Unlock()
	for _, f := range slices.Backward(all) {
		f()
	}
}

// A Section of a story is a T that may end before the story does.
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

// Cleanup registers f for the end of the section.
func (p *Section) Cleanup(f func()) { p.own.Cleanup(f) }

// End returns when everything that the section has set up is cleaned up. A second End does nothing.
func (p *Section) End() { p.own.cleanUp() }
