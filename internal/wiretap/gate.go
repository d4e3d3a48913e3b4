package wiretap

import "net"

// gate is where frames wait on their way.
type gate struct {
	pass     func(Frame)
	isSilent bool // what passes is not recorded
}

// Gate makes each frame of later connections wait until pass has returned for it: the connection is
// as slow as pass is. Frames keep their order in each direction. Frames that are not the lock's,
// such as pings, are also given to pass, but do not wait behind others, so that a session outlives
// a connection that is held up. A frame that is going to be lost is lost after its wait. What
// passes is not recorded.
func (t *Tap) Gate(pass func(Frame)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gate = &gate{pass, true}
}

// GateOnRecord is Gate, but what passes is also recorded.
func (t *Tap) GateOnRecord(pass func(Frame)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gate = &gate{pass, false}
}

// waiting is a frame, and the function that sends it on.
type waiting struct {
	Frame
	on func() error
}

// queueUp gives a connection the queues before its gate. They end with the connection.
func (c *conn) queueUp() {
	c.up, c.down, c.arrived = make(chan waiting, 64), make(chan waiting, 64), make(chan []byte)
	for _, line := range []chan waiting{c.up, c.down} {
		go func() {
			for {
				select {
				case w := <-line:
					c.gate.pass(w.Frame)
					err := w.on()
					c.tap.mu.Lock()
					c.before--
					c.tap.mu.Unlock()
					if err != nil {
						c.Close()
						return
					}
				case <-c.closed:
					return
				}
			}
		}()
	}
	go func() {
		defer c.Close()
		arrive := func(b []byte) {
			select {
			case c.arrived <- b:
			case <-c.closed:
			}
		}
		for c.receive(arrive) == nil {
		}
	}()
}

// queues reports whether a frame waits before the gate.
func (c *conn) queues(f Frame) bool { return c.gate != nil && !f.passesBy() }

// line queues a frame before the gate, or lets it pass the gate.
func (c *conn) line(line chan<- waiting, f Frame, on func() error) error {
	if c.gate == nil {
		return on()
	}
	if !c.queues(f) {
		c.gate.pass(f)
		return on()
	}
	select {
	case line <- waiting{f, on}:
		return nil
	case <-c.closed:
		return net.ErrClosed
	}
}
