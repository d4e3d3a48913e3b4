package check

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/zktest"
	reentrant "zklock/step05_reentrant"
)

// A Candidate stands for election.
type Candidate interface {
	Campaign(context.Context) (leading context.Context, err error)
	Leader() (name string, err error)
	Resign(leading context.Context) error
}

// ElectionProperties are those of an election.
func ElectionProperties[C Candidate](newCandidate func(s *reentrant.Session, path, name string) C) []Property {
	type candidate struct {
		*zktest.Client
		office C
		*call
		leading context.Context
	}
	joins := func(s *story, name string, timeout time.Duration) *candidate {
		c := &candidate{}
		c.Client = s.ConnectWith(name, func(dial zk.Dialer) (*zk.Conn, func(), error) {
			session, err := reentrant.Open(s.Servers(), timeout, reentrant.WithDialer(dial))
			if err != nil {
				return nil, nil, err
			}
			c.office = newCandidate(session, s.Root+"/team", name)
			return session.Conn(), session.Close, nil
		})
		return c
	}
	campaigns := func(s *story, c *candidate) {
		c.call = s.start(c.Client, func(ctx context.Context) (err error) {
			c.leading, err = c.office.Campaign(ctx)
			return err
		})
	}
	leads := func(s *story, name string, timeout time.Duration) *candidate {
		c := joins(s, name, timeout)
		campaigns(s, c)
		c.succeeds()
		return c
	}
	waits := func(s *story, name string) *candidate {
		c := joins(s, name, zktest.SessionTimeout)
		campaigns(s, c)
		c.mustWait("somebody leads")
		return c
	}
	resigns := func(s *story, c *candidate) {
		if err := c.office.Resign(c.leading); err != nil {
			s.fails("%s resigned, and was told: %v", c.Name, err)
		}
	}
	// says fails the story unless all name the same leader.
	says := func(s *story, want, when string, all ...*candidate) {
		for _, c := range all {
			if name, err := c.office.Leader(); err != nil || name != want {
				s.fails("%s, and %s takes %q for the leader (%v); it is %q", when, c.Name, name, err, want)
			}
		}
	}
	return []Property{
		{"one leads at a time", "when does Campaign return, and for how many at a time?", func(s *story) {
			a := leads(s, "A", zktest.SessionTimeout)
			b, c := waits(s, "B"), waits(s, "C")
			resigns(s, a)
			b.succeeds()
			c.mustWait("B leads")
			resigns(s, b)
			c.succeeds()
			s.holds("A led, then B, then C")
		}},
		{"everybody knows who leads", "where could the leader's name stand, so that anybody can read it?", func(s *story) {
			onlooker := joins(s, "the onlooker", zktest.SessionTimeout)
			says(s, "", "nobody has campaigned", onlooker)
			a := leads(s, "A", zktest.SessionTimeout)
			b := waits(s, "B")
			says(s, "A", "A leads", a, b, onlooker)
			resigns(s, a)
			b.succeeds()
			says(s, "B", "A has resigned and B leads", a, b, onlooker)
			_ = b.Cancel() // its context ends; it has to resign all the same
			resigns(s, b)
			says(s, "", "all have resigned", a, b, onlooker)
			s.holds("nobody, A, B, nobody: all three said so")
		}},
		{"a dead leader is not named", "who takes the name away when the leader cannot?", func(s *story) {
			a := leads(s, "A", zktest.MortalTimeout)
			onlooker := joins(s, "the onlooker", zktest.SessionTimeout)
			a.Crash()
			s.AwaitExpiry(a.Client)
			says(s, "", "A's session has expired", onlooker)
			b := leads(s, "B", zktest.SessionTimeout)
			says(s, "B", "A's session has expired and B leads", b, onlooker)
			s.holds("A's session expired: nobody was named, and then B")
		}},
		{"a leader that is cut off knows it first", "what does step 5 tell a holder, and how do you pass it on?", func(s *story) {
			a := leads(s, "A", zktest.MortalTimeout)
			b := waits(s, "B")
			a.Crash()
			b.succeeds()
			if a.leading.Err() == nil {
				s.fails("A was cut off and B leads: A's context has not ended")
			}
			s.holds("A was cut off, and its context had ended when B led")
		}},
		{"a late resignation harms nobody", "A has lost its session, and B leads: what does A's Resign delete?", func(s *story) {
			a := leads(s, "A", zktest.MortalTimeout)
			b := waits(s, "B")
			a.Crash()
			b.succeeds()
			a.Tap.Restore()
			s.Await("A to have a new session", func() bool { return a.State() == zk.StateHasSession && a.SessionID() != a.ID })
			if err := a.office.Resign(a.leading); err == nil {
				s.fails("A had lost its office to B, and its Resign said that all was well")
			}
			says(s, "B", "B leads, and A has resigned too late", b)
			waits(s, "C")
			s.holds("A resigned too late, was told so, and B leads on")
		}},
		{"giving up leaves nothing behind", "ctx has ended: what have you put into ZooKeeper by now?", func(s *story) {
			a := leads(s, "A", zktest.SessionTimeout)
			b, c := waits(s, "B"), waits(s, "C")
			b.givesUp()
			s.leftNothing(b.Client)
			resigns(s, a)
			c.succeeds()
			says(s, "C", "B has given up, A has resigned", b)
			s.holds("B gave up and left nothing, and C leads after A")
		}},
	}
}
