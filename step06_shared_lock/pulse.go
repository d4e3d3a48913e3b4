package sharedlock

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"time"
)

// pulse is a connection that tells its session of every answer that comes from
// the leader, and when the question had been sent. It reads ZooKeeper's frames:
// a length of four bytes, then the frame. The first frame each way is the
// handshake. After it each request and each ping has one answer, in order; what
// begins with the number -1 is no answer, but a notification. The client writes
// one whole frame a Write.
type pulse struct {
	net.Conn
	s        *Session
	patience time.Duration // with the handshake

	mu   sync.Mutex
	sent []question // those without an answer yet

	known []time.Time // when those were sent of which the leader may know last

	wrote   bool          // the handshake
	in      *bufio.Reader // of Conn: the client reads a frame in two pieces
	greeted bool
	head    []byte // the first bytes of the frame being read
	rest    int    // how many bytes of it are still to come
}

// question is a frame from the client. The handshake and what changes something
// are the leader's to answer; a ping and a read any server answers by itself,
// even one that has lost its leader and does not know it yet.
type question struct {
	at       time.Time
	toLeader bool
}

// The requests of a lock that the leader answers, by ZooKeeper's own numbers.
const (
	opCreate = 1
	opDelete = 2
	opSync   = 9
)

func newPulse(conn net.Conn, s *Session) *pulse {
	return &pulse{Conn: conn, s: s, patience: s.dialled(), in: bufio.NewReader(conn)}
}

func (p *pulse) Write(b []byte) (int, error) {
	q := question{at: time.Now(), toLeader: true}
	if p.wrote && len(b) >= 12 { // length, number, kind of request
		op := binary.BigEndian.Uint32(b[8:])
		q.toLeader = op == opCreate || op == opDelete || op == opSync
	}
	p.wrote = true
	p.mu.Lock()
	p.sent = append(p.sent, q)
	p.mu.Unlock()
	if _, err := p.Conn.Write(b); err != nil {
		p.Conn.Close() // the client's reader finds out, and fails all that is in flight
	}
	return len(b), nil // told of an error, the client fails a request twice, and may block for ever
}

// SetReadDeadline shortens the client's patience with a server that accepts a
// connection and does not answer the handshake: others may serve meanwhile.
func (p *pulse) SetReadDeadline(t time.Time) error {
	if !p.greeted {
		t = time.Now().Add(p.patience)
	}
	return p.Conn.SetReadDeadline(t)
}

func (p *pulse) Read(b []byte) (int, error) {
	n, err := p.in.Read(b)
	if err != nil && !p.greeted {
		p.s.hindered(fmt.Errorf("%s did not answer the handshake: %w", p.RemoteAddr(), err))
	}
	for seen := b[:n]; len(seen) > 0; {
		if p.rest > 0 {
			skip := min(p.rest, len(seen))
			p.rest, seen = p.rest-skip, seen[skip:]
			continue
		}
		p.head, seen = append(p.head, seen[0]), seen[1:]
		if err := p.look(); err != nil {
			return 0, err
		}
	}
	return n, err
}

// minFrame is the head of an answer: without it the client would panic.
// maxFrame is far above any answer that a lock asks for.
const (
	minFrame = 16
	maxFrame = 64 << 20
)

// look looks at the frame's first bytes, once they are there.
func (p *pulse) look() error {
	want := 8 // length, number
	if !p.greeted {
		want = 20 // length, protocol version, time-out in ms, session id
	}
	if len(p.head) == 4 {
		if size := binary.BigEndian.Uint32(p.head); size > maxFrame || size < minFrame {
			return p.strange("sent a frame of %d bytes", size)
		}
	}
	if len(p.head) < want {
		return nil
	}
	number := func(at int) uint32 { return binary.BigEndian.Uint32(p.head[at:]) }
	p.rest = int(number(0)) + 4 - want
	if !p.greeted {
		p.greeted = true
		id := int64(binary.BigEndian.Uint64(p.head[12:]))
		timeout := time.Duration(int32(number(8))) * time.Millisecond
		if id != 0 && timeout <= 0 { // the client would panic
			return p.strange("granted a session time-out of %v", timeout)
		}
		sent := p.asked().at
		p.known = []time.Time{sent}
		p.s.greeted(sent, id, timeout)
	} else if int32(number(4)) != -1 {
		p.answered(p.asked())
	}
	p.head = p.head[:0]
	return nil
}

// answered renews the lease. A follower passes a request on at once, but reports
// only twice a tick who is alive. So the leader's answer proves that it knows of
// what we asked some time before: a tenth of the time-out, which is half a tick
// or more if the time-out is five ticks or more.
func (p *pulse) answered(q question) {
	if q.at.IsZero() { // an answer to nothing
		return
	}
	_, timeout := p.s.now()
	p.known = append(p.known, q.at)
	for len(p.known) > 1 && q.at.Sub(p.known[1]) >= timeout/10 {
		p.known = p.known[1:]
	}
	if q.toLeader && q.at.Sub(p.known[0]) >= timeout/10 {
		p.s.heard(p.known[0])
	}
}

// strange says what a server did that no ZooKeeper does.
func (p *pulse) strange(did string, value any) error {
	err := fmt.Errorf("%s "+did+": this is not ZooKeeper", p.RemoteAddr(), value)
	p.s.hindered(err)
	return err
}

// asked takes the oldest unanswered question. An answer to nothing has none.
func (p *pulse) asked() question {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.sent) == 0 {
		return question{}
	}
	q := p.sent[0]
	p.sent = p.sent[1:]
	return q
}
