package leased

import (
	"encoding/binary"
	"net"
	"sync"

	"zklock/internal/wiretap"
)

// throttling is a connection to a server that is too busy. For the requests that it refuses, it answers at
// once with the error of a server that throttles, and the request is not carried out.
func throttling(c net.Conn, refuses func(op wiretap.Op, path string) bool) net.Conn {
	near, far := net.Pipe() // supports deadlines, as a network connection does
	var mu sync.Mutex       // one frame after the other
	answer := func(frame []byte) error {
		mu.Lock()
		defer mu.Unlock()
		_, err := far.Write(frame)
		return err
	}
	go func() { // what the server sends
		defer far.Close()
		frame := make([]byte, 64<<10) // the tap gives one at a time
		for {
			n, err := c.Read(frame)
			if err != nil {
				return
			}
			if answer(frame[:n]) != nil {
				return
			}
		}
	}()
	go func() { // what the client sends
		defer c.Close()
		handshake, err := wiretap.ReadFrame(far)
		if err != nil {
			return
		}
		if _, err := c.Write(handshake); err != nil {
			return
		}
		for {
			request, err := wiretap.ReadFrame(far)
			if err != nil {
				return
			}
			if refuses(opAndPath(request)) {
				err = answer(refusal(request))
			} else {
				_, err = c.Write(request)
			}
			if err != nil {
				return
			}
		}
	}()
	return near
}

// refusal returns the answer of a server that is too busy: the request's number, no change, and the error.
func refusal(request []byte) []byte {
	code := int32(-127)
	answer := binary.BigEndian.AppendUint32(nil, 4+8+4)
	answer = append(answer, request[4:8]...)
	answer = binary.BigEndian.AppendUint64(answer, 0)
	return binary.BigEndian.AppendUint32(answer, uint32(code))
}

// opAndPath returns the operation of a request and, if there is one, its path.
func opAndPath(request []byte) (op wiretap.Op, path string) {
	const opAt, lengthAt, pathAt = 8, 12, 16
	op = wiretap.Op(binary.BigEndian.Uint32(request[opAt:]))
	if len(request) < pathAt {
		return op, ""
	}
	length := int(binary.BigEndian.Uint32(request[lengthAt:]))
	if length > len(request)-pathAt {
		return op, ""
	}
	return op, string(request[pathAt:][:length])
}
