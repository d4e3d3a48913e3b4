package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/check/actor"
	"zklock/internal/lang"
	"zklock/internal/server/wiretap"
)

// story tells what a client does, from what stands on its wire.
type story struct {
	name, path string
	conn       *zk.Conn
	tap        *wiretap.Tap
	terminal   bool

	mu      sync.Mutex
	mark    int // frames before it are told
	session int64
	up      bool
	last    string // the last sentence,
	times   int    // how often it was true in a row,
	printed time.Time
}

// newStory begins a story, which goes on by itself until end is called.
func newStory(name, path string, conn *zk.Conn, tap *wiretap.Tap) (s *story, end func()) {
	info, err := os.Stdout.Stat()
	s = &story{
		name: name, path: path, conn: conn, tap: tap, session: conn.SessionID(), up: true,
		terminal: err == nil && info.Mode()&os.ModeCharDevice != 0,
	}
	done, told := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(told)
		for tick := time.Tick(20 * time.Millisecond); ; {
			s.catchUp()
			select {
			case <-tick:
			case <-done:
				return
			}
		}
	}()
	return s, func() { close(done); <-told }
}

// say tells what the wire does not show, after what it has shown.
func (s *story) say(format string, args ...any) {
	s.catchUp()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.print(time.Now(), fmt.Sprintf(format, args...))
}

// catchUp tells what has passed on the wire, and how the connection is.
func (s *story) catchUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	frames := s.tap.Since(s.mark)
	s.mark += len(frames)
	for _, f := range frames {
		if text := s.sentence(f); text != ("") {
			s.print(f.At, text)
		}
	}
	if up := s.conn.State() == zk.StateHasSession; up != s.up {
		s.up = up
		s.print(time.Now(), map[bool]string{true: "connected again", false: "lost its connection"}[up])
	}
	if id := s.conn.SessionID(); s.up && id != s.session {
		s.print(time.Now(), fmt.Sprintf("its session %#x has expired; it has a new one, %#x", s.session, id))
		s.session = id
	}
}

// print writes a line. One that says the same as the last is counted: in a terminal
// it takes the place of the last, else it is written once a second.
func (s *story) print(at time.Time, text string) {
	line := fmt.Sprintf("%s %s  %s", s.name, at.Format("15:04:05.000"), text)
	if text != s.last {
		s.last, s.times = text, 0
	}
	if s.times++; s.times > 1 {
		if !s.terminal && at.Sub(s.printed) < time.Second {
			return
		}
		line += fmt.Sprintf(" (%d times)", s.times)
		if s.terminal {
			line = "\x1b[A\r\x1b[K" + line
		}
	}
	s.printed = at
	fmt.Println(line)
}

// sentence says what a frame means; it is empty if that is not the lock's doing. Its subject
// is the name at the beginning of the line.
func (s *story) sentence(f wiretap.Frame) string {
	name := strings.TrimPrefix(f.Path, s.path+"/")
	hasFound := f.Kind == wiretap.Reply && f.Op == wiretap.GetData && f.Err == wiretap.OK
	switch {
	case f.Kind == wiretap.Reply && actor.IsProof(f.Path):
		return "renewed its lease, by a write in vain"
	case hasFound && f.Watch:
		return fmt.Sprintf("is not the first: it watches %v", name)
	}
	return strings.TrimSpace(f.Sentence(lang.Text{}, name).EN)
}
