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

// Tell tells a story outside of tests: tell gets a T, and Tell returns what the
// story failed with, once all that it has set up is gone.
func Tell(tell func(T)) error {
	p := begin(tell)
	<-p.ended
	return p.failure()
}

// TellUntil is Tell of a story that may hang: it has to come to its end when ctx ends, and
// what it leaves behind is not waited for.
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
	case <-time.After(2 * time.Second): // its waits should have ended it by now
		waited := time.Since(began).Round(time.Second)
		return fmt.Errorf("a call without a context, such as Unlock, has not come back within %v", waited)
	}
}

// teller is the T of a story.
type teller struct {
	told  chan struct{} // closed when the story has come to its end
	ended chan struct{} // closed when all is gone

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
			if broken := recover(); broken != nil { // as by the lock that the story is told of
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
