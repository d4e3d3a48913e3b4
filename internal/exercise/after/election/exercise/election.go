// Package election is an exercise after the steps, for you to write: of several
// candidates one leads, everybody can ask who, and the leader is told when it
// no longer does.
//
// What stands here lets everybody lead.
//
//	go test ./yours/election    what it can do, and what not yet
//	make hint STEP=election     the next hint
package election

import (
	"context"

	reentrant "zklock/step05_reentrant"
)

// Candidate is one who may lead, under a name of its own.
type Candidate struct {
	lock *reentrant.Lock
	path string
	name string
}

// New returns a candidate of the election at path.
//
// TODO 1: one at a time. With this lock each candidate is alone: which path do
// all candidates of an election have in common?
// 待办 1：同一时刻只有一个。现在每个候选人独占一把锁：同一场选举的候选人共有哪个路径？
func New(s *reentrant.Session, path, name string) *Candidate {
	return &Candidate{reentrant.New(s, path+"/line-of-"+name), path, name}
}

// Campaign blocks until this candidate leads. The hold that it returns is its
// time in office: the hold's context ends when the office is lost.
//
// TODO 2: put up the leader's name, so that everybody can read it.
// 待办 2：把领导者的名字挂出来，人人都能读到。
func (c *Candidate) Campaign(ctx context.Context) (*reentrant.Hold, error) {
	return c.lock.Lock(ctx)
}

// Leader names the one who leads, "" when nobody does.
//
// TODO 3: read the name. What does it say of a leader that has died?
// 待办 3：读名字。领导者崩溃了，读到的是什么？
func (c *Candidate) Leader() (name string, err error) {
	return c.name, nil
}

// Resign ends the time in office. It returns an error when that had ended
// already, and then takes nobody else's name away.
//
// TODO 4: and when somebody else leads by now?
// 待办 4：这时领导者如果已经换成别的客户端，会怎样？
func (c *Candidate) Resign(office *reentrant.Hold) error {
	return office.Unlock()
}
