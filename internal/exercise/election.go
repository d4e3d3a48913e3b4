package exercise

import (
	"context"
	pathpkg "path"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/lang"
	"zklock/internal/property"
	"zklock/internal/zktest"
)

// A campaigner is a candidate in an election. Its time in office is the hold of a lock.
type campaigner[H zktest.Hold] interface {
	Campaign(context.Context) (H, error)
	Leader() (name string, err error)
	Resign(H) error
}

// candidacy is a session, and the call Leader of the candidate that uses it.
type candidacy struct {
	zktest.Session
	Leader func() (name string, err error)
}

// OverElection makes a Subject of an election. Its path is the path of the election, followed by
// the candidate's name.
func OverElection[S zktest.Session, H zktest.Hold, C campaigner[H]](
	open func(servers []string, timeout time.Duration, dial zk.Dialer) (S, error),
	newCandidate func(s S, path, name string) C,
) property.Subject {
	return property.Subject{
		Name: "New",
		Open: func(servers []string, timeout time.Duration, dial zk.Dialer) (zktest.Session, error) {
			s, err := open(servers, timeout, dial)
			return &candidacy{Session: s}, err
		},
		Ways: func(session zktest.Session, path string) (zktest.Way, *zktest.Way) {
			c := session.(*candidacy)
			candidate := newCandidate(c.Session.(S), pathpkg.Dir(path), pathpkg.Base(path))
			c.Leader = candidate.Leader
			campaign := func(ctx context.Context) (zktest.Hold, error) {
				hold, err := candidate.Campaign(ctx)
				if err != nil {
					return nil, err
				}
				return inOffice{hold, func() error { return candidate.Resign(hold) }}, nil
			}
			return zktest.Way{Lock: campaign}, nil
		},
	}
}

// inOffice is a hold that Resign releases.
type inOffice struct {
	zktest.Hold
	resign func() error
}

func (o inOffice) Unlock() error { return o.resign() }

// candidate brings a client that is a candidate.
func (s story) candidate(name string, timeout time.Duration) *zktest.Member {
	return s.JoinAs(name, property.Seat{Timeout: timeout, Path: s.Root + "/team/" + name})
}

// leader brings a candidate that leads, and follower brings one that waits.
func (s story) leader(name string, timeout time.Duration) *zktest.Turn {
	t := s.candidate(name, timeout).Start()
	s.succeeds(t)
	return t
}

func (s story) follower(name string) *zktest.Turn {
	return s.stands(s.candidate(name, zktest.SessionTimeout), "somebody leads")
}

// named fails the story unless all members say that this candidate is the leader.
func (s story) named(want, when string, all ...*zktest.Member) {
	for _, m := range all {
		name, err := m.Session.(*candidacy).Leader()
		s.FailsIf(err != nil, "%s, and %s asked who leads and got an error: %v", when, m.Name, err)
		s.FailsIf(name != want, "%s, and %s says that the leader is %q; it should be %q", when, m.Name, name, want)
	}
}

// electionProperties lists the properties of an election.
var electionProperties = []*property.Property{
	asked(lang.Of("one leads at a time", "同一时刻只有一个领导者"),
		lang.Of("when does Campaign return, and for how many candidates at a time?",
			"Campaign 什么时候返回？同一时刻，最多能有几个候选人的 Campaign 已经返回？"),
		func(s story) {
			a := s.leader("A", zktest.SessionTimeout)
			b, c := s.follower("B"), s.follower("C")
			s.leaves(a)
			s.succeeds(b)
			s.stillStands(c, "B leads")
			s.leaves(b)
			s.succeeds(c)
			s.Holds("A led, then B, then C")
		}),
	asked(lang.Of("every client can find out who leads", "人人知道谁是领导者"),
		lang.Of("where could the leader's name be stored, so that any client can read it?", "领导者的名字写在哪里，谁都能读到？"),
		func(s story) {
			onlooker := s.candidate("the onlooker", zktest.SessionTimeout)
			s.named("", "nobody has campaigned", onlooker)
			a := s.leader("A", zktest.SessionTimeout)
			b := s.follower("B")
			s.named("A", "A leads", a.Member, b.Member, onlooker)
			s.leaves(a)
			s.succeeds(b)
			s.named("B", "A has resigned and B leads", a.Member, b.Member, onlooker)
			_ = b.Cancel() // its context ends; it has to resign anyway
			s.leaves(b)
			s.named("", "all have resigned", a.Member, b.Member, onlooker)
			s.Holds("the leader was nobody, A, B, nobody: all three clients agreed")
		}),
	asked(lang.Of("a crashed leader is no longer reported as the leader", "崩溃的领导者不再被当作领导者"),
		lang.Of("what removes the name when the leader cannot?", "领导者自己不能撤下名字时，由谁来撤？"),
		func(s story) {
			a := s.leader("A", zktest.MortalTimeout)
			onlooker := s.candidate("the onlooker", zktest.SessionTimeout)
			a.Crash()
			s.AwaitExpiry(a.Client)
			s.named("", "A's session has expired", onlooker)
			b := s.leader("B", zktest.SessionTimeout)
			s.named("B", "A's session has expired and B leads", b.Member, onlooker)
			s.Holds("A's session expired: nobody was named, and then B")
		}),
	asked(lang.Of("a disconnected leader is notified before another one leads", "失去连接的领导者最先知道"),
		lang.Of("how does a holder of step 5 learn of its loss, and how do you pass that on?", "第 5 步的持有者怎样得知锁丢了？你怎样转告调用者？"),
		func(s story) {
			a := s.leader("A", zktest.MortalTimeout)
			b := s.follower("B")
			a.Crash()
			s.AwaitExpiry(a.Client)
			s.succeeds(b)
			s.FailsIf(a.Context().Err() == nil, "A was disconnected and B leads: A's context has not ended")
			s.Holds("A was disconnected, and its context had ended when B led")
		}),
	asked(lang.Of("a late resignation does no harm", "迟到的卸任不影响别人"),
		lang.Of("A has lost its session, and B leads: what does A's Resign delete?", "A 丢失了会话，B 是领导者：A 的 Resign 会删除什么？"),
		func(s story) {
			a := s.leader("A", zktest.MortalTimeout)
			b := s.follower("B")
			a.Crash()
			s.AwaitExpiry(a.Client)
			s.succeeds(b)
			a.Tap.Restore()
			s.Await(
				"A to have a new session",
				func() bool { return a.State() == zk.StateHasSession && a.SessionID() != a.ID },
			)
			if err := a.Unlock(); err == nil {
				s.Fails("A had lost the leadership to B, and its Resign returned nil")
			}
			s.named("B", "B leads, and A has resigned too late", b.Member)
			s.follower("C")
			s.Holds("A resigned too late and got an error, and B still leads")
		}),
	asked(lang.Of("giving up leaves nothing behind", "放弃等待后不留残余"),
		lang.Of("ctx has ended: what have you created in ZooKeeper by now?", "ctx 已经结束：到这时，你在 ZooKeeper 里创建了什么？"),
		func(s story) {
			a := s.leader("A", zktest.SessionTimeout)
			b, c := s.follower("B"), s.follower("C")
			s.givesUp(b)
			s.leaves(a)
			s.succeeds(c)
			s.named("C", "B has given up, A has resigned", b.Member)
			s.Holds("B gave up and left nothing, and C leads after A")
		}),
}
