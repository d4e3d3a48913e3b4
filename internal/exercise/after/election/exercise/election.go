// Package election is an exercise after the steps, for you to write: one of several candidates
// leads, every client can find out which, and the leader is notified when it no longer leads.
//
// This starter lets every candidate lead.
//
//	go test ./yours/election    what it can do, what it cannot do yet, and how to get a hint
package election

import (
	"context"

	reentrant "zklock/step05_reentrant"
)

// Candidate is a client that may lead, under a name of its own.
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
// TODO 2: store the leader's name where every client can read it.
// 待办 2：把领导者的名字挂出来，人人都能读到。
func (c *Candidate) Campaign(ctx context.Context) (*reentrant.Hold, error) {
	return c.lock.Lock(ctx)
}

// Leader returns the name of the leader, "" when nobody leads.
//
// TODO 3: read the name. What do you read when the leader has crashed?
// 待办 3：读名字。领导者崩溃了，读到的是什么？
func (c *Candidate) Leader() (name string, err error) {
	return c.name, nil
}

// Resign ends the time in office. When that has ended already, it returns an
// error, and does not delete another leader's name.
//
// TODO 4: what if another candidate leads by now?
// 待办 4：这时领导者如果已经换成别的客户端，会怎样？
func (c *Candidate) Resign(office *reentrant.Hold) error {
	return office.Unlock()
}
