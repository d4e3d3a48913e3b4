package check

import (
	"context"
	"fmt"

	"github.com/go-zookeeper/zk"

	"zklock/internal/zktest"
)

// A Semaphore lets several in.
type Semaphore interface {
	Acquire(context.Context) (release func() error, err error)
}

// SemaphoreProperties are those of a semaphore, in the order in which they are
// best written.
func SemaphoreProperties[S Semaphore](newSemaphore func(conn *zk.Conn, path string, permits int) S) []Property {
	// A guest is a client that comes for a permit.
	type guest struct {
		*call
		leave func() error
	}
	const permits = 2
	come := func(s *story, c *zktest.Client) *guest {
		sem := newSemaphore(c.Conn, s.Root+"/room", permits)
		g := &guest{}
		g.call = s.start(c, func(ctx context.Context) (err error) {
			g.leave, err = sem.Acquire(ctx)
			return err
		})
		return g
	}
	enter := func(s *story, name string) *guest {
		g := come(s, s.Client(name))
		g.isServed("a permit is left")
		return g
	}
	wait := func(s *story, name string) *guest {
		g := come(s, s.Client(name))
		g.mustWait(fmt.Sprintf("%d permits are out", permits))
		return g
	}
	leaves := func(s *story, g *guest) {
		if err := g.leave(); err != nil {
			s.fails("%s released its permit, and was told: %v", g.Name, err)
		}
	}
	return []Property{
		{"two at a time, and no more", "how many permits are out, and how does a newcomer find out?", func(s *story) {
			enter(s, "A")
			b := enter(s, "B")
			c := wait(s, "C")
			leaves(s, b)
			c.succeeds()
			wait(s, "D")
			s.holds("A and B were let in, C when B had left, and D was not")
		}},
		{"whoever leaves makes room", "of all who are inside, whose leaving can a waiter make use of?", func(s *story) {
			a := enter(s, "A")
			enter(s, "B")
			c := wait(s, "C")
			leaves(s, a)
			c.succeeds()
			s.holds("A left before B, and C was let in")
		}},
		{"a crashed holder's permit comes free", "who takes the permit back when its holder cannot?", func(s *story) {
			a := come(s, s.Mortal("A"))
			a.succeeds()
			enter(s, "B")
			c := wait(s, "C")
			a.Crash()
			s.AwaitExpiry(a.Client)
			c.succeeds()
			s.holds("A's session expired, and C was let in")
		}},
		{"first come, first served", "who may look for a free permit when several wait?", func(s *story) {
			inside := []*guest{enter(s, "A"), enter(s, "B")}
			line := []*guest{wait(s, "C"), wait(s, "D"), wait(s, "E")}
			for i, g := range line {
				leaves(s, inside[i%2])
				g.succeeds()
				inside[i%2] = g
				for _, later := range line[i+1:] {
					later.mustWait(g.Name + " came first")
				}
			}
			s.holds("C, D and E were let in, in this order")
		}},
		{"a release wakes one", "how many clients watch the permits?", func(s *story) {
			a := enter(s, "A")
			enter(s, "B")
			line := []*guest{wait(s, "C"), wait(s, "D"), wait(s, "E"), wait(s, "F")}
			for _, g := range line {
				g.mustWait("two are inside") // the arrivals behind it have had their effect
			}
			count := s.Count(line[2].Turn, line[3].Turn) // D, the next in line, moves up
			leaves(s, a)
			line[0].succeeds()
			if n := count().Notifications; n > 0 {
				s.fails("one release let C in, and sent %d notifications to E and F, far back in the line", n)
			}
			s.holds("one release let C in, and sent 0 notifications to E and F, far back in the line")
		}},
		{"giving up leaves nothing behind", "ctx has ended: what have you put into ZooKeeper by now?", func(s *story) {
			enter(s, "A")
			b := enter(s, "B")
			c, d, e := wait(s, "C"), wait(s, "D"), wait(s, "E")
			for _, g := range []*guest{c, d} {
				g.givesUp()
				s.leftNothing(g.Client)
			}
			e.mustWait("two are inside")
			leaves(s, b)
			e.succeeds()
			s.holds("C and D gave up and left nothing, and E was let in")
		}},
	}
}
