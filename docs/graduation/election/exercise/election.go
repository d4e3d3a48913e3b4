// Package exercise is a graduation exercise, for you to write: of several
// candidates one leads, everybody can ask who, and the leader is told when it
// no longer does.
//
// What stands here lets everybody lead.
//
//	make exercise STEP=election
//	make hint STEP=election
package exercise

import (
	"context"

	reentrant "zklock/step05_reentrant"
)

// Candidate is one who may lead, under a name of its own.
type Candidate struct {
	s    *reentrant.Session
	path string
	name string
}

// New returns a candidate of the election at path.
func New(s *reentrant.Session, path, name string) *Candidate {
	return &Candidate{s, path, name}
}

// Campaign blocks until this candidate leads. The context that it returns is
// its time in office: it ends when the office is lost, and Resign needs it.
//
// TODO 1: one at a time. You have a lock for that, which also tells of a loss.
// 待办 1：同一时刻一个。你有一把锁做这件事，它还会通知锁丢失。
// TODO 2: put up the leader's name, so that everybody can read it.
// 待办 2：把领导者的名字挂出来，人人都能读到。
func (c *Candidate) Campaign(ctx context.Context) (leading context.Context, err error) {
	return ctx, nil
}

// Leader names the one who leads, "" when nobody does.
//
// TODO 2: read the name. What does it say of a leader that has died?
// 待办 2：读名字。领导者死了，它会说什么？
func (c *Candidate) Leader() (name string, err error) {
	return c.name, nil
}

// Resign ends the time in office. It returns an error when that had ended
// already, and then takes nobody else's name away.
//
// TODO 1, TODO 3: and when somebody else leads by now?
// 待办 1、待办 3：这时若已由别人领导呢？
func (c *Candidate) Resign(leading context.Context) error {
	return nil
}
