package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"zklock/internal/check/steps"
	"zklock/internal/server/wiretap"
)

// timeout is short enough to wait for, and long enough for the servers' usual limit.
const timeout = 6 * time.Second

// hold takes the lock, and keeps it until Enter is pressed or ctx ends.
func hold(ctx context.Context, stop func(), step, name string, reader bool) error {
	server, err := find(ctx)
	if err != nil {
		return err
	}
	path, tap := "/locks/step0"+step, wiretap.New()
	session, err := steps.Of(step).Open(server.Servers(), timeout, tap.Dial)
	if err != nil {
		return err
	}
	defer session.Close()
	way, read := steps.Of(step).Ways(session, path)
	if reader {
		way = *read
	}
	crashOnQuit()
	enter := enters(stop)

	s, end := newStory(name, path, session.Conn(), tap)
	defer end()
	s.say("has a session at %s: %#x, asked for a time-out of %v s", server.Addr, session.Conn().SessionID(), timeout.Seconds())
	s.say(`Ctrl-C ends it in good order, Ctrl-Z and fg are a pause, Ctrl-\ or kill -9 %d a crash`, os.Getpid())
	held, err := way.Lock(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		s.say("gave up")
		return nil
	case err != nil:
		s.say("Lock has failed")
		return err
	}
	select {
	case <-enter: // pressed too early
	default:
	}
	var token string
	if way.Token != nil {
		n, _ := way.Token(held)
		token = fmt.Sprintf(", its token is %d", n)
	}
	s.say("holds the lock%s; Enter releases it", token)
	select {
	case <-enter:
	case <-ctx.Done():
	case <-held.Done():
	}
	if held.Err() != nil && ctx.Err() == nil {
		s.say("was told: %v", context.Cause(held))
		_ = way.Unlock(held)
		s.say("stopped, and called Unlock")
		return nil
	}
	if err := way.Unlock(held); err != nil {
		s.say("Unlock has failed")
		return err
	}
	s.say("released the lock")
	return nil
}

// crashOnQuit makes Ctrl-\ what kill -9 is. By itself Go would print all that it does.
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

// enters has a value when Enter has been pressed. The end of the input is a Ctrl-C.
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
