package sharedlock

import (
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// pulse is a connection that tells its session of every handshake and ping
// that was answered, and when the question had been sent. It reads ZooKeeper's
// frames: a length of four bytes, then the frame; the first four bytes of it
// are the number -2 in a ping, both ways. The first frame is the handshake.
// The client writes one whole frame a Write.
type pulse struct {
	net.Conn
	s *Session

	mu    sync.Mutex
	wrote bool
	sent  []time.Time // of the handshake and the pings without an answer yet

	greeted bool
	head    []byte // the first bytes of the frame being read
	rest    int    // how many bytes of it are still to come
}

func (p *pulse) Write(b []byte) (int, error) {
	p.mu.Lock()
	if ping := len(b) >= 8 && int32(binary.BigEndian.Uint32(b[4:])) == -2; ping || !p.wrote {
		p.sent = append(p.sent, time.Now())
	}
	p.wrote = true
	p.mu.Unlock()
	n, err := p.Conn.Write(b)
	if err != nil { // the client would pass on the bare network error
		err = fmt.Errorf("%w: %w", zk.ErrConnectionClosed, err)
	}
	return n, err
}

// SetReadDeadline shortens the client's patience with a server that accepts a
// connection and does not answer the handshake: others may serve meanwhile.
func (p *pulse) SetReadDeadline(t time.Time) error {
	if !p.greeted {
		_, timeout := p.s.now()
		t = time.Now().Add(timeout / 3)
	}
	return p.Conn.SetReadDeadline(t)
}

func (p *pulse) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
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

// maxFrame is far above any answer that a lock asks for.
const maxFrame = 64 << 20

// look looks at the frame's first bytes, once they are there.
func (p *pulse) look() error {
	want := 8 // length, number
	if !p.greeted {
		want = 20 // length, protocol version, time-out in ms, session id
	}
	if len(p.head) == 4 {
		if size := binary.BigEndian.Uint32(p.head); size > maxFrame || int(size)+4 < want {
			return fmt.Errorf("zklock: %s sent a frame of %d bytes: this is not ZooKeeper", p.RemoteAddr(), size)
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
		p.s.greeted(p.asked(), id, time.Duration(int32(number(8)))*time.Millisecond)
	} else if int32(number(4)) == -2 {
		p.s.heard(p.asked())
	}
	p.head = p.head[:0]
	return nil
}

// asked takes the time at which the oldest unanswered question was sent.
func (p *pulse) asked() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.sent) == 0 { // an answer to nothing proves nothing
		return time.Time{}
	}
	sent := p.sent[0]
	p.sent = p.sent[1:]
	return sent
}
