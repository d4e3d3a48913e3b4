package sharedlock

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net"
	"time"
)

// handshake is a connection that tells its session what the server has granted,
// for the client keeps that to itself. It reads the head of the first frame:
// length, protocol version, time-out in ms, session id. The rest passes unread.
type handshake struct {
	net.Conn
	in       *bufio.Reader // of Conn: the client reads a frame in two pieces
	s        *Session
	begun    time.Time
	answered bool
}

func (h *handshake) Write(b []byte) (int, error) {
	if _, err := h.Conn.Write(b); err != nil {
		h.Conn.Close() // the client's reader finds out, and fails all that is in flight
	}
	return len(b), nil // told of an error, the client fails a request twice, and may block for ever
}

func (h *handshake) Read(b []byte) (int, error) {
	if !h.answered {
		h.SetReadDeadline(time.Now().Add(h.s.Timeout() * 2 / 3)) // as for all later answers: the client would wait ten times as long
		head, err := h.in.Peek(20)
		if err != nil {
			return 0, fmt.Errorf("%s did not answer the handshake: %w", h.RemoteAddr(), err)
		}
		length, id := binary.BigEndian.Uint32(head), int64(binary.BigEndian.Uint64(head[12:]))
		timeout := time.Duration(int32(binary.BigEndian.Uint32(head[8:]))) * time.Millisecond
		if length < 16 || length > 1<<10 || id != 0 && timeout <= 0 { // the client would panic
			return 0, fmt.Errorf("%s answered the handshake with %q: this is not ZooKeeper", h.RemoteAddr(), head)
		}
		h.s.granted(h.begun, id, timeout)
		h.answered = true
	}
	return h.in.Read(b)
}
