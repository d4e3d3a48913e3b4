package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/steps"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// timeout is the session timeout: short enough to wait for, and not below the usual minimum of a
// server.
const timeout = 6 * time.Second

// take takes a step's lock, and keeps it until Enter is pressed or ctx ends.
func take(ctx context.Context, stop func(), step int, name string, reads bool) error {
	lock := steps.All[step-1]
	server, err := find(ctx)
	if err != nil {
		return err
	}
	path, tap := fmt.Sprintf("/locks/step%02d", step), wiretap.New()
	session, err := lock.Open(server.Servers(), timeout, tap.Dial)
	if err != nil {
		return err
	}
	defer session.Close()
	for session.Conn().State() != zk.StateHasSession {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(10 * time.Millisecond):
		}
	}
	way, reader := lock.Ways(session, path)
	if reads && reader == nil {
		return fmt.Errorf("READ=1 with STEP=%d: only step 6 has readers", step)
	}
	if reads {
		way = *reader
	}
	crashOnQuit()
	enter := enters(stop)

	w, end := tellWire(name, path, session.Conn(), tap)
	defer end()
	w.say("has a session at %s: %#x, with a timeout of %v", server.Addr, session.Conn().SessionID(), timeout)
	w.say(`Ctrl-C stops it cleanly; Ctrl-Z pauses it, and fg resumes it; Ctrl-\ or kill -9 %d crashes it`, os.Getpid())
	held, err := way.Lock(ctx)
	if err != nil && ctx.Err() != nil {
		w.say("gave up")
		return nil
	}
	if err != nil {
		w.say("Lock has failed")
		return err
	}
	select {
	case <-enter: // pressed too early
	default:
	}
	return hold(ctx, w, way, held, enter)
}

// hold keeps the lock until Enter is pressed, ctx ends, or the lock is lost.
func hold(ctx context.Context, w *wire, way zktest.Way, held zktest.Hold, enter <-chan struct{}) error {
	token := ""
	if way.HasHolds() {
		token = fmt.Sprintf(", its token is %d", held.Token())
	}
	w.say("holds the lock%s; Enter releases it", token)
	work := held.Context(ctx)
	select {
	case <-enter:
	case <-work.Done():
	}
	isLost := work.Err() != nil && ctx.Err() == nil
	if isLost {
		w.say("was notified: %v", context.Cause(work))
		_ = held.Unlock()
		w.say("stopped, and called Unlock")
		return nil
	}
	if err := held.Unlock(); err != nil {
		w.say("Unlock has failed")
		return err
	}
	w.say("released the lock")
	return nil
}

// crashOnQuit makes Ctrl-\ act like kill -9. Otherwise Go would print the stacks of all goroutines.
func crashOnQuit() {
	quit := make(chan os.Signal, 1)
	signal.Notify(quit, syscall.SIGQUIT)
	go func() {
		<-quit
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Kill()
		}
	}()
}

// enters returns a channel that has a value when Enter has been pressed. The end of the input has
// the effect of Ctrl-C.
func enters(stop func()) <-chan struct{} {
	enter := make(chan struct{}, 1)
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			select {
			case enter <- struct{}{}:
			default:
			}
		}
		stop()
	}()
	return enter
}
