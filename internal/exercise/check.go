package exercise

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"zklock/internal/explore"
	"zklock/internal/property"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

// patience is how long a story waits in which nothing moves; and how long one does that came to
// no end, and is told once more, alone.
const (
	patience      = 10 * time.Second
	patienceAlone = 30 * time.Second
)

// places are for the stories that are told at the same time. They mostly wait.
var places = make(chan struct{}, 4*runtime.NumCPU())

// company is locked for reading by a story that may be told beside others, and for writing by one
// that is told alone.
var company sync.RWMutex

// everyOrder is the last question.
const everyOrder = "every order"

// Check asks a learner's lock for the properties of an exercise, one after the other, and
// stops at the first that it lacks. When it has all of them, the orders of two clients are
// played. How far the lock has come is written into the folder of the test.
//
// In step 1 the second lock is the one that is free again after a crash.
func Check(t *testing.T, e Exercise, locks ...property.Subject) {
	locks[0].Name = "mine " + e.Name
	explore.Acts(locks[0]) // make play and make explore start this test as a client of the lock
	if here, err := os.Getwd(); err == nil && filepath.Base(here) == "exercise" {
		t.Skipf("this is the starter: make exercise STEP=%s copies it to %s", e.Name, e.Dir())
	}
	locks[0] = locks[0].Elsewhere(t.Name())
	zktest.LeavesGoroutines() // a learner's package is not asked for them
	server, err := zktest.Shared()
	if err != nil {
		t.Fatal(err)
	}
	p := progressIn(".")
	p.Begun, p.Held, p.Missing, p.Stuck, p.Done = true, 0, canBeUsed, false, false
	keep := func() { // each time, in case that the lock ends the process
		if err := p.keep("."); err != nil {
			t.Error(err)
		}
	}
	keep()
	isAll := true
	for a := range e.answers(t.Context(), server, locks) {
		isAsked := false
		t.Run(a.question, func(t *testing.T) {
			isAsked = true
			a.tell(t, e)
		})
		if !isAsked { // -run names another one
			isAll = false
			continue
		}
		if t.Failed() {
			p.Missing, p.Stuck = a.question, a.isStuck()
			keep()
			if p.Held > 0 {
				fmt.Fprintf(t.Output(), "%d of %d properties hold. The others are asked when this one holds.\n",
					p.Held, len(e.Properties))
			}
			return
		}
		if a.question != canBeUsed {
			p.Held++
		}
		p.Missing = ""
		if p.Held < len(e.Properties) {
			p.Missing = e.Properties[p.Held].String()
		}
		keep()
	}
	if e.hasOrders() {
		t.Run(everyOrder, func(t *testing.T) { e.playOrders(t, server) })
		if t.Failed() {
			p.Missing = everyOrder
		}
	}
	keep()
	zktest.AfterRun(func(passed bool) {
		p.Done = isAll && passed
		keep()
	})
}

// An answer is what the check has found out about one of its questions.
type answer struct {
	question string // the property's name, or canBeUsed
	verdict  property.Verdict
	seen     string
	ask      string // what to ask oneself
}

func (a answer) holds() bool { return a.verdict.Accepted() }

// isStuck tells whether the question has no answer: somebody waited for what never came.
func (a answer) isStuck() bool { return a.verdict == property.Stuck }

func (a answer) tell(t *testing.T, e Exercise) {
	if a.holds() {
		fmt.Fprintln(t.Output(), "✓", a.seen)
		return
	}
	t.Fail()
	fmt.Fprintln(t.Output(), a.verdict, "seen:", a.seen)
	fmt.Fprintln(t.Output(), "  ask yourself:", a.ask)
	fmt.Fprintf(t.Output(), "  more: make hint STEP=%s, and %s\n", e.Name, e.chapter())
}

// answers asks as many questions at once as there are places, for most of their time is spent
// waiting. It gives the answers in the order of the questions, and stops asking when nobody wants
// more of them. A question without an answer is asked once more, alone.
func (e Exercise) answers(
	ctx context.Context,
	server *zkserver.Server,
	locks []property.Subject,
) iter.Seq[answer] {
	return func(yield func(answer) bool) {
		ctx, enough := context.WithCancel(ctx)
		defer enough()
		first := use(server, locks[0])
		if !yield(first) || !first.holds() {
			return
		}
		coming := map[*property.Property]chan answer{}
		for _, p := range e.Properties {
			coming[p] = make(chan answer, 1)
		}
		go func() {
			for _, p := range e.longestFirst() {
				select {
				case places <- struct{}{}:
				case <-ctx.Done():
					return
				}
				company.RLock()
				go func() {
					coming[p] <- ask(ctx, patience, server, p, locks)
					company.RUnlock()
					<-places
				}()
			}
		}()
		for _, p := range e.Properties {
			a := <-coming[p]
			if a.isStuck() {
				company.Lock()
				a = ask(ctx, patienceAlone, server, p, locks)
				company.Unlock()
			}
			if !yield(a) || !a.holds() {
				return
			}
		}
	}
}

// longestFirst are the properties in the order in which they are asked. The long hold takes six
// seconds, and nobody is to wait for it at the end.
func (e Exercise) longestFirst() []*property.Property {
	isLong := func(p *property.Property) bool { return p == property.LongHold || p == property.LaggingServer }
	var long, others []*property.Property
	for _, p := range e.Properties {
		if isLong(p) {
			long = append(long, p)
		} else {
			others = append(others, p)
		}
	}
	return append(long, others...)
}

// ask asks for one property.
func ask(
	ctx context.Context,
	patience time.Duration,
	server *zkserver.Server,
	p *property.Property,
	locks []property.Subject,
) answer {
	lock := locks[0]
	if p == property.CrashFrees {
		lock = locks[len(locks)-1] // in step 1 there are two
	}
	r := property.CheckUntil(ctx, patience, server, lock, p)
	a := answer{question: p.String(), verdict: r.Verdict, seen: r.Evidence, ask: p.Question.EN}
	if a.isStuck() {
		a.seen = fmt.Sprintf("no answer for %v: %s. The last requests: %s", patience, r.Evidence, r.Asked)
		a.ask = "is this machine busy? Or does your lock wait for what never comes: " +
			"who is to wake it, and whose znode is still there?"
	}
	return a
}

// hasOrders tells whether the orders of two clients can be played. They cannot where waiters
// ask from time to time, as in the first two steps.
func (e Exercise) hasOrders() bool { return e.IsStep() && e.Name != "1" && e.Name != "2" }

// playOrders looks for an order of two clients' requests, or a place for a fault, in which
// the lock is wrong. A property is a situation that somebody has thought of. This finds those
// that nobody has thought of. It takes ten seconds at most.
func (e Exercise) playOrders(t *testing.T, server *zkserver.Server) {
	root := zktest.NewOn(t, server).Root
	found, err := explore.Mine(t.Context(), server.Servers(), root, e.Name, "")
	switch {
	case errors.Is(err, explore.ErrAsks):
		fmt.Fprintln(t.Output(), "✓", err)
	case err != nil:
		t.Error("the orders could not be played: ", err)
	case found.Wrong != "":
		t.Fail()
		fmt.Fprintf(t.Output(), "✗ seen: after %d orders one in which %s:\n", found.Orders, found.Wrong)
		for _, line := range found.Story {
			fmt.Fprintln(t.Output(), line)
		}
		fmt.Fprintf(t.Output(), "  more: make explore STEP=mine%s plays more of them, and draws this one\n", e.Name)
	case !found.All:
		fmt.Fprintf(t.Output(), "✓ %d orders, and none is wrong; there was no time for the others\n", found.Orders)
	default:
		fmt.Fprintf(t.Output(), "✓ %d orders, and none is wrong\n", found.Orders)
	}
}

// chapter is the page to read.
func (e Exercise) chapter() string {
	if e.IsStep() {
		return filepath.Join(e.Home, "README.md")
	}
	return "docs/workshop.md"
}
