package wiretap

import (
	"encoding/binary"
	"fmt"
	"time"
)

// Op is the kind of a request, by ZooKeeper's own number.
type Op int32

// The requests that a lock's client sends.
const (
	Create      Op = 1
	Delete      Op = 2
	Exists      Op = 3
	GetData     Op = 4
	SetData     Op = 5
	Sync        Op = 9
	Ping        Op = 11
	GetChildren Op = 12 // getChildren2: the names and the parent's Stat
	Multi       Op = 14
	SetAuth     Op = 100
	SetWatches  Op = 101 // re-arms the watches on a new connection
	Connect     Op = -10 // the handshake that makes or resumes a session
	Close       Op = -11
	Any         Op = -99 // for a trap: whatever comes next, but no ping and no handshake
)

var opNames = map[Op]string{
	Create: "create", Delete: "delete", Exists: "exists", GetData: "getData", SetData: "setData",
	Sync: "sync", Ping: "ping", GetChildren: "getChildren", Multi: "multi", SetAuth: "setAuth",
	SetWatches: "setWatches", Connect: "connect", Close: "close",
}

func (op Op) String() string {
	if name := opNames[op]; name != "" {
		return name
	}
	return fmt.Sprintf("op %d", int32(op))
}

// Kind says which way a frame goes and why.
type Kind int

// A request goes to the server; a reply and a notification come from it.
const (
	Request Kind = iota
	Reply
	Notification
)

func (k Kind) String() string { return [...]string{"request", "reply", "notification"}[k] }

// The errors of a reply that tests ask about, by ZooKeeper's own number.
const (
	OK         int32 = 0
	NoNode     int32 = -101
	NodeExists int32 = -110
)

// The events of a notification, by ZooKeeper's own number.
const (
	NodeCreated     int32 = 1
	NodeDeleted     int32 = 2
	NodeDataChanged int32 = 3
	ChildrenChanged int32 = 4
)

// Frame is one message as it stood on the wire.
type Frame struct {
	At    time.Time // when it passed the tap
	Kind  Kind
	Op    Op     // a reply bears the Op of the request that it answers
	Xid   int32  // the client's number for a request and its reply
	Path  string // named by a request, made by a create, or watched
	Watch bool   // the request (or the request answered) also sets a watch
	Zxid  int64  // in a reply: the last transaction that the server had applied
	Err   int32  // in a reply: OK, NoNode, …
	Names int    // in a reply to getChildren: how many names the list held
	Event int32  // in a notification: NodeDeleted, ChildrenChanged, …
	Bytes int    // the whole frame, its length prefix included
	Lost  bool   // a fault kept it from arriving
}

func (f Frame) String() string {
	s := fmt.Sprintf("%v %v %s", f.Kind, f.Op, f.Path)
	switch {
	case f.Kind == Notification:
		s = fmt.Sprintf("notification %d %s", f.Event, f.Path)
	case f.Kind == Reply:
		s += fmt.Sprintf(" error %d zxid %#x", f.Err, f.Zxid)
	case f.Watch:
		s += " and watch"
	}
	if f.Lost {
		s += " (lost)"
	}
	return s
}

// readRequest decodes a request. It never fails: what a short or strange body
// does not say stays at its zero value, for a tap must not disturb the line.
func readRequest(b []byte) Frame {
	r := reader{b[4:]}
	f := Frame{Kind: Request, Xid: r.int32(), Op: Op(r.int32()), Bytes: len(b)}
	switch f.Op {
	case Create, Delete, SetData, Sync:
		f.Path = r.string()
	case Exists, GetData, GetChildren:
		f.Path = r.string()
		f.Watch = r.bool()
	}
	return f
}

// readReply decodes what comes from the server. asked is the request that it
// answers, looked up by its xid.
func readReply(b []byte, asked func(xid int32) Frame) Frame {
	r := reader{b[4:]}
	xid, zxid, err := r.int32(), r.int64(), r.int32()
	if xid == -1 {
		f := Frame{Kind: Notification, Xid: xid, Event: r.int32(), Bytes: len(b)}
		r.int32() // the session's state
		f.Path = r.string()
		return f
	}
	f := asked(xid)
	f.Kind, f.Xid, f.Zxid, f.Err, f.Bytes = Reply, xid, zxid, err, len(b)
	if err == OK && f.Op == Create {
		f.Path = r.string() // with the sequence number that the server added
	}
	if err == OK && f.Op == GetChildren {
		f.Names = max(0, int(r.int32()))
	}
	return f
}

// rearmed lists what a setWatches request watches: data (and existence) first,
// children second.
func rearmed(b []byte) (data, children []string) {
	r := reader{b[4:]}
	r.int32() // xid
	r.int32() // op
	r.int64() // the last zxid seen
	data = append(r.strings(), r.strings()...)
	return data, r.strings()
}

// reader takes ZooKeeper's encoding apart: big-endian numbers, and strings
// behind their length.
type reader struct{ b []byte }

// take returns the next n bytes. If there are not so many, it returns none, and
// nothing more can be read.
func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.b = nil
		return nil
	}
	taken := r.b[:n]
	r.b = r.b[n:]
	return taken
}

func (r *reader) int32() int32 {
	if b := r.take(4); len(b) == 4 {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (r *reader) int64() int64 {
	if b := r.take(8); len(b) == 8 {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (r *reader) bool() bool     { b := r.take(1); return len(b) == 1 && b[0] != 0 }
func (r *reader) string() string { return string(r.take(int(r.int32()))) }

func (r *reader) strings() []string {
	var all []string
	for n := r.int32(); n > 0 && len(r.b) > 0; n-- {
		all = append(all, r.string())
	}
	return all
}
