package wiretap

import "net"

// gate is what frames wait for on their way.
type gate struct {
	pass func(Frame)
	past func(Frame) bool
}

// Gate makes each frame of the connections to come wait, on its way, until pass has
// returned for it: the line is as slow as pass is. Frames keep their order each way.
// Pings, and frames for which past is true, do not wait behind others, so that a
// session outlives a line that stands still; past ones are given to pass, too. A
// frame that is going to be lost is so after its wait. What passes is not kept on
// record.
func (t *Tap) Gate(pass func(Frame), past func(Frame) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gate = &gate{pass, past}
}

// queues are where a connection's frames wait, to the server and to the client.
type queues struct {
	*gate
	up, down chan waiting
	arrived  chan []byte
	closed   chan struct{}
}

// waiting is a frame, and what lets it go on.
type waiting struct {
	Frame
	on func() error
}

// queueUp gives a connection its queues, which end with it.
func (c *conn) queueUp(g *gate) {
	q := &queues{g, make(chan waiting, 64), make(chan waiting, 64), make(chan []byte), c.closed}
	c.queues = q
	for _, line := range []chan waiting{q.up, q.down} {
		go func() {
			for {
				select {
				case w := <-line:
					q.pass(w.Frame)
					if w.on() != nil {
						c.Close()
						return
					}
				case <-q.closed:
					return
				}
			}
		}()
	}
	go func() {
		defer c.Close()
		for {
			b, f, arrive, err := c.receive()
			if err == nil {
				err = q.line(q.down, f, func() error {
					return arrive(func() {
						select {
						case q.arrived <- b:
						case <-q.closed:
						}
					})
				})
			}
			if err != nil {
				return
			}
		}
	}()
}

// line lets a frame stand in line, or go past it.
func (q *queues) line(line chan<- waiting, f Frame, on func() error) error {
	switch {
	case f.Op == Ping:
		return on()
	case q.past(f):
		q.pass(f)
		return on()
	}
	select {
	case line <- waiting{f, on}:
		return nil
	case <-q.closed:
		return net.ErrClosed
	}
}

// next waits for the next frame that has arrived.
func (q *queues) next(c *conn) error {
	select {
	case c.unread = <-q.arrived:
		return nil
	case <-q.closed:
		return net.ErrClosed
	}
}
