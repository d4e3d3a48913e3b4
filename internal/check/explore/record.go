package explore

import (
	"fmt"
	"sync"
	"time"

	"zklock/internal/check/zktest"
	"zklock/internal/server/wiretap"
)

// A Record is an order as the taps at its clients have seen it. Only an order that is to be
// drawn is recorded: its methods do nothing for nil.
type Record struct {
	Dir     string // in which the lock's znodes are
	Lanes   []*Lane
	Ends    []SessionEnd
	Choices []time.Time // when each choice was made
	Over    time.Time
}

// A Lane is what has passed at a client, and what it has believed of itself.
type Lane struct {
	Frames []wiretap.Frame
	Moods  []zktest.Mood

	mu   sync.Mutex
	sent map[int32]time.Time // requests, by their number
	over bool
}

// A SessionEnd is the end of a client's session, with which its znodes have gone.
type SessionEnd struct {
	Client      int
	After, Seen time.Time
	Zxid        int64
}

// begins begins the record of an order.
func (r *Record) begins(dir string, clients int) {
	if r == nil {
		return
	}
	*r = Record{Dir: dir}
	for range clients {
		lane := &Lane{sent: map[int32]time.Time{}}
		lane.becomes(zktest.MoodIdle)
		r.Lanes = append(r.Lanes, lane)
	}
}

// lane is the client's.
func (r *Record) lane(client int) *Lane {
	if r == nil {
		return nil
	}
	return r.Lanes[client]
}

// chooses notes that a choice is made now.
func (r *Record) chooses() {
	if r != nil {
		r.Choices = append(r.Choices, time.Now())
	}
}

// ends ends the record.
func (r *Record) ends() {
	if r == nil {
		return
	}
	r.Over = time.Now()
	for _, lane := range r.Lanes {
		lane.mu.Lock()
		lane.over = true
		lane.mu.Unlock()
	}
}

// passes notes a frame, which now goes on, or is lost.
func (l *Lane) passes(f wiretap.Frame) {
	isLeftOut := f.Op == wiretap.Ping || f.IsBarrier()
	if l == nil || isLeftOut {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	f.At = time.Now() // not when it came to the gate
	switch f.Kind {
	case wiretap.Request:
		l.sent[f.Xid] = f.At
	case wiretap.Reply:
		f.Asked = l.sent[f.Xid]
	}
	l.Frames = append(l.Frames, f)
}

// becomes notes what the client believes of itself from now on.
func (l *Lane) becomes(mood string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	l.Moods = append(l.Moods, zktest.Mood{At: time.Now(), Is: mood})
}

// ends makes a client's session end, and notes it if a znode went with it.
func (p *player) ends(client int, session func() error) error {
	if p.record == nil {
		return session()
	}
	before, err := p.lastChange()
	if err != nil {
		return err
	}
	end := SessionEnd{Client: client, After: time.Now()}
	if err := session(); err != nil {
		return err
	}
	end.Seen = time.Now()
	end.Zxid, err = p.lastChange()
	if err == nil && end.Zxid != before {
		p.record.Ends = append(p.record.Ends, end)
	}
	return err
}

// lastChange is the transaction that has last made or deleted a znode in the directory.
func (p *player) lastChange() (zxid int64, err error) {
	_, stat, err := p.eye.Exists(p.path)
	if err != nil {
		return 0, fmt.Errorf("look at %s: %v", p.path, err)
	}
	return stat.Pzxid, nil
}
