package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/wiretap"
)

// wire prints what a client does, according to the frames on its connection.
type wire struct {
	name, path string
	conn       *zk.Conn
	tap        *wiretap.Tap
	terminal   bool

	mu      sync.Mutex
	mark    int // the frames before it have been printed
	session int64
	up      bool
	last    string // the last sentence
	times   int    // how often in a row it was the last
	printed time.Time
}

// tellWire prints what the client does from now on, until end is called.
func tellWire(name, path string, conn *zk.Conn, tap *wiretap.Tap) (w *wire, end func()) {
	info, err := os.Stdout.Stat()
	w = &wire{
		name: name, path: path, conn: conn, tap: tap, session: conn.SessionID(), up: true,
		terminal: err == nil && info.Mode()&os.ModeCharDevice != 0,
	}
	done, told := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(told)
		for tick := time.Tick(20 * time.Millisecond); ; {
			w.catchUp()
			select {
			case <-tick:
			case <-done:
				return
			}
		}
	}()
	return w, func() { close(done); <-told }
}

// say prints something that the connection does not show, after what the connection has shown so
// far.
func (w *wire) say(format string, args ...any) {
	w.catchUp()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.print(time.Now(), fmt.Sprintf(format, args...))
}

// catchUp prints what has passed on the connection, and whether the connection or the session has
// changed.
func (w *wire) catchUp() {
	w.mu.Lock()
	defer w.mu.Unlock()
	frames := w.tap.Since(w.mark)
	w.mark += len(frames)
	for _, f := range frames {
		if text := w.sentence(f); text != "" {
			w.print(f.At, text)
		}
	}
	up := w.conn.State() == zk.StateHasSession
	if w.up && !up {
		w.print(time.Now(), "lost its connection")
	}
	if up && !w.up {
		w.print(time.Now(), "connected again")
	}
	w.up = up
	if id := w.conn.SessionID(); w.up && id != w.session {
		w.print(time.Now(), fmt.Sprintf("its session %#x has expired; it has a new one, %#x", w.session, id))
		w.session = id
	}
}

// print writes a line. If its text is the same as the last one, print counts it: in a terminal the
// line replaces the last one, and elsewhere print writes it once a second.
func (w *wire) print(at time.Time, text string) {
	line := fmt.Sprintf("%s %s  %s", w.name, at.Format("15:04:05.000"), text)
	if text != w.last {
		w.last, w.times = text, 0
	}
	if w.times++; w.times > 1 {
		if !w.terminal && at.Sub(w.printed) < time.Second {
			return
		}
		line += fmt.Sprintf(" (%d times)", w.times)
		if w.terminal {
			line = "\x1b[A\r\x1b[K" + line
		}
	}
	w.printed = at
	fmt.Println(line)
}

// sentence returns what a frame means, or "" for a frame that needs no sentence. The name at the
// beginning of the line is the subject of the sentence.
func (w *wire) sentence(f wiretap.Frame) string {
	znode := strings.TrimPrefix(f.Path, w.path+"/")
	isReply := f.Kind == wiretap.Reply
	hasFound := isReply && f.Op == wiretap.GetData && f.Err == wiretap.OK
	if hasFound && f.Watch {
		return "is not the first: it watches " + znode
	}
	return f.Did(znode).EN
}
