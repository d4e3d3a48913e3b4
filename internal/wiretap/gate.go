package wiretap

import "net"

// gate is what frames wait for on their way.
type gate struct {
	pass     func(Frame)
	isSilent bool // what passes is not kept on record
}

// Gate makes each frame of the connections to come wait, on its way, until pass has
// returned for it: the line is as slow as pass is. Frames keep their order each way.
// What is not the lock's doing, pings among it, is given to pass, too, but does not wait behind
// others, so that a session outlives a line that stands still. A
// frame that is going to be lost is so after its wait. What passes is not kept on
// record.
func (t *Tap) Gate(pass func(Frame)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gate = &gate{pass, true}
}

// GateOnRecord is Gate, and what passes is kept on record, too.
func (t *Tap) GateOnRecord(pass func(Frame)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gate = &gate{pass, false}
}

// waiting is a frame, and what lets it go on.
type waiting struct {
	Frame
	on func() error
}

// queueUp gives a connection queues before its gate, which end with it.
func (c *conn) queueUp() {
	c.up, c.down, c.arrived = make(chan waiting, 64), make(chan waiting, 64), make(chan []byte)
	for _, line := range []chan waiting{c.up, c.down} {
		go func() {
			for {
				select {
				case w := <-line:
					c.gate.pass(w.Frame)
					if w.on() != nil {
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

// line lets a frame stand in line before the gate, or go past it.
func (c *conn) line(line chan<- waiting, f Frame, on func() error) error {
	switch {
	case c.gate == nil:
		return on()
	case f.passesBy() || f.Op == Ping:
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
