package exercise

import (
	"context"

	"github.com/go-zookeeper/zk"

	"zklock/internal/lang"
	"zklock/internal/property"
	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// An acquirer is a semaphore: several clients can have a permit at the same time.
type acquirer interface {
	Acquire(context.Context) (release func() error, err error)
}

const permits = 2

// OverSemaphore makes a Subject of a semaphore with two permits.
func OverSemaphore[S acquirer](newSemaphore func(conn *zk.Conn, path string, permits int) S) property.Subject {
	return property.Subject{
		Name: "New",
		Open: property.Connect,
		Ways: func(session zktest.Session, path string) (zktest.Way, *zktest.Way) {
			semaphore := newSemaphore(session.Conn(), path, permits)
			acquire := func(ctx context.Context) (zktest.Hold, error) {
				release, err := semaphore.Acquire(ctx)
				if err != nil {
					return nil, err
				}
				return zktest.HoldOf(release), nil
			}
			return zktest.Way{Lock: acquire}, nil
		},
	}
}

// inside brings a client that gets a permit, because one is left.
func (s story) inside(name string) *zktest.Turn { return s.enters(s.Join(name), "a permit is left") }

// outside brings clients, one after the other, that must wait, because all permits are taken.
func (s story) outside(names ...string) (line []*zktest.Turn) {
	for _, name := range names {
		line = append(line, s.stands(s.Join(name), "%d permits are taken", permits))
	}
	return line
}

// semaphoreProperties lists the properties of a semaphore, in the order in which they are best
// written. In all stories but the second, the client that leaves is the one that got its permit
// last. The second story is about the others.
var semaphoreProperties = []*property.Property{
	asked(lang.Of("at most two at a time", "最多同时发出两个许可"),
		lang.Of("how many permits are taken, and how does a new client find out?", "发出了几个许可？新来者怎么知道？"),
		func(s story) {
			s.inside("A")
			b := s.inside("B")
			c := s.outside("C")[0]
			s.leaves(b)
			s.succeeds(c)
			s.outside("D")
			s.Holds("A and B got a permit, C got one when B had left, and D did not")
		}),
	asked(lang.Of("whichever holder leaves, its permit is free again", "无论哪个持有者离开，它的许可都会空出来"),
		lang.Of("which of the clients with a permit must leave, so that a waiter gets a permit?",
			"持有许可的客户端当中，哪一个离开，等待者就能拿到许可？"),
		func(s story) {
			a := s.inside("A")
			s.inside("B")
			c := s.outside("C")[0]
			s.leaves(a)
			s.succeeds(c)
			s.Holds("A left before B, and C got a permit")
		}),
	asked(lang.Of("a crashed holder's permit is free again", "持有者崩溃后许可会归还"),
		lang.Of("what returns the permit when its holder cannot?", "持有者自己还不了许可时，由谁收回？"),
		func(s story) {
			s.inside("A")
			b := s.Join("B")
			s.succeeds(b.Start())
			c := s.outside("C")[0]
			s.Expire(b.Client)
			s.succeeds(c)
			s.Holds("B's session expired, and C got a permit")
		}),
	asked(lang.Of("first come, first served", "先来先得"),
		lang.Of("who may look for a free permit when several wait?", "几个客户端在等时，谁可以去找空闲的许可？"),
		func(s story) {
			s.inside("A")
			latest := s.inside("B")
			line := s.outside("C", "D", "E")
			for i, t := range line {
				slow := t.Tap.HoldRequest(wiretap.Any, 1) // so that all others have time to overtake
				s.leaves(latest)
				if i == 0 {
					line = append(line, s.stands(s.Join("F"), "%v came first", t.Name))
				}
				for _, later := range line[i+1:] {
					s.stillStands(later, "%v came first", t.Name)
				}
				slow.Let()
				s.succeeds(t)
				latest = t
			}
			s.leaves(latest)
			s.succeeds(line[3])
			s.Holds("C, D, E, and F, which came when a permit was free again, got permits in this order")
		}),
	asked(lang.Of("a release wakes one", "一次释放只唤醒一个"),
		lang.Of("how many clients watch the permits?", "有几个客户端监听许可？"),
		func(s story) {
			s.inside("A")
			b := s.inside("B")
			line := s.outside("C", "D", "E", "F")
			for _, t := range line {
				s.stillStands(t, "two permits are taken") // the arrivals behind it have had their effect
			}
			count := s.Count(line[2:]...) // D, the next in line, moves up
			s.leaves(b)
			s.succeeds(line[0])
			n := count().Notifications
			s.FailsIf(n > 0, "one release let C in, and sent %d notifications to E and F, far back in the queue", n)
			s.Holds("one release let C in, and sent 0 notifications to E and F, far back in the queue")
		}),
	asked(lang.Of("giving up leaves nothing behind", "放弃等待后不留残余"),
		lang.Of("ctx has ended: what have you created in ZooKeeper by now?", "ctx 已经结束：到这时，你在 ZooKeeper 里创建了什么？"),
		func(s story) {
			s.inside("A")
			b := s.inside("B")
			line := s.outside("C", "D", "E")
			for _, t := range line[:2] {
				s.givesUp(t)
			}
			s.stillStands(line[2], "two permits are taken")
			s.leaves(b)
			s.succeeds(line[2])
			s.Holds("C and D gave up and left nothing, and E got a permit")
		}),
}
