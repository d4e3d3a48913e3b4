// Package actor has clients of a lock that report their states: a Client in this process, and an Actor
// in a process of its own. The process that started an Actor is its parent. An Actor carries out the
// parent's commands, and reports its state and each frame on its connection. A frame passes when the
// parent lets it.
package actor

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/process"
	"zklock/internal/property"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// Acts makes this process a client of the lock, if the process was started for that.
func Acts(lock property.Subject) {
	process.Role(lock.Name, func(parent process.Call) any {
		tell := func(s State) { _ = parent("Becomes", s, new(bool)) }
		return &Actor{lock: lock, parent: parent, tap: wiretap.New(), client: NewClient(tell)}
	})
}

// An Address says where a client finds its lock.
type Address struct {
	Servers []string
	Timeout time.Duration
	Path    string
}

// A Frame is a frame at the gate, with what only the client knows about it.
type Frame struct {
	wiretap.Frame
	Watched []string // for a SetWatches: the paths
	Session int64    // the client's session; 0: none yet, or not filled in
	Server  string   // the server of the present or last connection; "": none yet, or not filled in
}

// Seen returns the Frame for a frame at the gate of a client's tap.
func Seen(tap *wiretap.Tap, f wiretap.Frame) Frame {
	seen := Frame{Frame: f}
	if f.Op == wiretap.SetWatches {
		seen.Watched = tap.Watched()
	}
	return seen
}

// An Actor is what a parent sees of its child: the parent calls the exported methods. The parent itself
// has the methods Pass, with a Frame, Becomes, with a State, and Put, with a token.
type Actor struct {
	lock    property.Subject
	parent  process.Call
	tap     *wiretap.Tap
	client  *Client
	session zktest.Session
	conn    atomic.Pointer[zk.Conn]
	write   zktest.Way
	read    *zktest.Way
}

// Begin opens a session for the lock, and reports whether the lock has readers.
func (a *Actor) Begin(place Address, reads *bool) (err error) {
	a.tap.Gate(func(f wiretap.Frame) {
		seen := Seen(a.tap, f)
		if conn := a.conn.Load(); conn != nil {
			seen.Session, seen.Server = conn.SessionID(), conn.Server()
		}
		_ = a.parent("Pass", seen, new(bool))
	})
	if a.session, err = a.lock.Open(place.Servers, place.Timeout, a.tap.Dial); err != nil {
		return err
	}
	conn := a.session.Conn()
	a.conn.Store(conn)
	for late := time.Now().Add(zktest.Patience); conn.State() != zk.StateHasSession; time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			return errors.New("no server gives it a session")
		}
	}
	a.write, a.read = a.lock.Ways(a.session, place.Path)
	*reads = a.read != nil
	return a.parent("Becomes", State{Name: Idle}, new(bool))
}

// Do carries out a command. Calls of the lock continue after Do has returned.
func (a *Actor) Do(what string, _ *bool) error {
	standing := a.client.standing()
	standing.Reads = a.read != nil
	if why := standing.Refuses(what); why != "" {
		return errors.New("it " + why)
	}
	switch what {
	case "lock":
		go a.client.Lock(context.Background(), a.write, Holds)()
	case "read":
		go a.client.Lock(context.Background(), *a.read, Reads)()
	case "again":
		go a.client.Enter()()
	case "giveup":
		a.client.GiveUp()
	case "unlock":
		return a.unlock()
	case "put":
		return a.parent("Put", a.client.Held().Token(), new(bool))
	case "losecreate":
		a.tap.LoseReply(wiretap.Create, 1)
	case "losedelete":
		a.tap.LoseReply(wiretap.Delete, 1)
	case "cut":
		a.tap.Cut()
	case "restore":
		a.tap.Restore()
	default:
		return fmt.Errorf("it does not know what %q is", what)
	}
	return nil
}

// unlock calls Unlock, even if the client has no hold. A good lock refuses that.
func (a *Actor) unlock() error {
	unlock := a.write.Unlock // for a client that has never held the lock
	if held := a.client.Held(); held != nil {
		unlock = held.Unlock
	}
	if unlock == nil {
		return errors.New("it has no hold, and only a hold can unlock")
	}
	go a.client.Unlock(unlock)()
	return nil
}

// Leave ends the session.
func (a *Actor) Leave(bool, *bool) error {
	if a.session != nil {
		a.tap.Restore()
		a.session.Close()
	}
	return nil
}
