package wiretap

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
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
	Any         Op = -99 // for a trap: the next frame that is no ping and no handshake
)

// createContainer is the create of a directory that the servers delete when it is empty. A Frame calls it Create.
const createContainer Op = 19

// IsWrite reports whether the servers must agree on such a request, even if it fails.
func (op Op) IsWrite() bool { return op == Create || op == Delete || op == SetData || op == Multi }

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

// Kind is the direction and the purpose of a frame.
type Kind int

// A request is sent to the server. A reply and a notification are sent by it.
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

// Frame is one message as it was on the wire.
type Frame struct {
	At    time.Time // when it passed the tap
	Kind  Kind
	Op    Op        // a reply has the Op of the request that it answers
	Xid   int32     // the client's number for a request and its reply
	Path  string    // named by a request, made by a create, or watched
	Watch bool      // the request (or the request answered) also sets a watch
	Zxid  int64     // in a reply: the last transaction that the server had applied
	Err   int32     // in a reply: OK, NoNode, …
	Names int       // in a reply to getChildren: how many names the list held
	Event int32     // in a notification: NodeDeleted, ChildrenChanged, …
	Asked time.Time // in a reply: when its request passed the tap
	Bytes int       // the whole frame, its length prefix included
	Lost  bool      // a fault kept it from arriving
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

// maxFrame is the largest frame. The server's own limit is 1 MiB for a request, and a list of very
// many names can be longer.
const maxFrame = 64 << 20

// ReadFrame reads one frame, its length prefix included.
func ReadFrame(from io.Reader) ([]byte, error) {
	b := make([]byte, 4)
	if _, err := io.ReadFull(from, b); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(b)
	if size > maxFrame {
		return nil, fmt.Errorf("wiretap: a frame of %d bytes: this is not ZooKeeper's protocol", size)
	}
	b = append(b, make([]byte, size)...)
	_, err := io.ReadFull(from, b[4:])
	return b, err
}

// readRequest decodes a request. It never fails, because a tap must not disturb the connection:
// what a short body does not say stays at its zero value.
func readRequest(b []byte) Frame {
	r := bytes.NewReader(b[4:])
	f := Frame{Kind: Request, Xid: read[int32](r), Op: Op(read[int32](r)), Bytes: len(b)}
	if f.Op == createContainer {
		f.Op = Create
	}
	switch f.Op {
	case Create, Delete, SetData, Sync:
		f.Path = readString(r)
	case Exists, GetData, GetChildren:
		f.Path = readString(r)
		f.Watch = read[bool](r)
	}
	return f
}

// readReply decodes a frame from the server. asked returns the request that it answers, by its xid.
func readReply(b []byte, asked func(xid int32) Frame) Frame {
	r := bytes.NewReader(b[4:])
	xid, zxid, err := read[int32](r), read[int64](r), read[int32](r)
	if xid == -1 {
		f := Frame{Kind: Notification, Xid: xid, Event: read[int32](r), Bytes: len(b)}
		read[int32](r) // the session's state
		f.Path = readString(r)
		return f
	}
	f := asked(xid)
	f.Kind, f.Xid, f.Zxid, f.Err, f.Bytes = Reply, xid, zxid, err, len(b)
	if err == OK && f.Op == Create {
		f.Path = readString(r) // with the sequence number that the server added
	}
	if err == OK && f.Op == GetChildren {
		f.Names = max(0, int(read[int32](r)))
	}
	return f
}

// watch is an entry in the server's tables of watches. The watches of getData and exists share a
// table.
type watch struct {
	path     string
	children bool
}

// readWatches decodes what a setWatches request sets again: three lists of paths, for data, for
// existence and for children.
func readWatches(b []byte) (set []watch) {
	r := bytes.NewReader(b[4:])
	read[int32](r) // xid
	read[int32](r) // op
	read[int64](r) // the last zxid seen
	for _, children := range []bool{false, false, true} {
		for n := read[int32](r); n > 0 && r.Len() > 0; n-- {
			set = append(set, watch{readString(r), children})
		}
	}
	return set
}

// read takes a number or a bool, big-endian, from the front. If there are too few bytes, it returns
// zero, and nothing more can be read.
func read[V int32 | int64 | bool](r *bytes.Reader) (v V) {
	_ = binary.Read(r, binary.BigEndian, &v)
	return v
}

// readString takes a string, which follows its length.
func readString(r *bytes.Reader) string {
	n := int(read[int32](r))
	if n < 0 || n > r.Len() {
		n = 0
		r.Reset(nil)
	}
	b := make([]byte, n)
	_, _ = r.Read(b)
	return string(b)
}
