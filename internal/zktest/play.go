package zktest

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
)

// Play tells a story outside of tests: tell gets a T, and Play returns what the
// story failed with.
func Play(tell func(T)) error {
	p := &player{}
	ended := make(chan struct{})
	go func() { // on a goroutine of its own, which FailNow ends
		defer close(ended)
		defer p.cleanUp()
		tell(p)
	}()
	<-ended
	return p.err
}

// player is the T of Play.
type player struct {
	mu       sync.Mutex
	err      error
	cleanups []func()
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

func (p *player) Cleanup(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cleanups = append(p.cleanups, f)
}

func (p *player) cleanUp() {
	for _, f := range slices.Backward(p.cleanups) {
		f()
	}
}
