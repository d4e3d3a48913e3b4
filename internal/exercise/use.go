package exercise

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"zklock/internal/lang"
	"zklock/internal/property"
	"zklock/internal/wiretap"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

// canBeUsed is the first question of a check.
const canBeUsed = "it can be locked and unlocked"

// Questions for a learner whose lock cannot be used.
var (
	whatError   = lang.Text{EN: "what does this error mean?", ZH: "这个错误是什么意思？"}
	whyNewSends = lang.Text{
		EN: "New has no context, and returns no error: what if the server does not answer? Which call can send the request instead?",
		ZH: "New 没有 context，也不返回错误：服务器不响应时怎么办？这个请求可以由哪个调用来发？",
	}
	whichChildren = lang.Text{
		EN: "the znode that this call deletes has children: is it the directory of the queue? Which znode should it delete?",
		ZH: "这次调用要删除的 znode 下面还有子节点：它是不是队列的目录？该删除的是哪一个 znode？",
	}
	whichCall = lang.Text{
		EN: "which call waits, and for what?",
		ZH: "是哪个调用？它在等什么？",
	}
	whatLockWaitsFor = lang.Text{
		EN: "what does Lock wait for, when there is no other client?",
		ZH: "没有别人时，Lock 在等什么？",
	}
	whatUnlockWaitsFor = lang.Text{
		EN: "what does Unlock wait for?",
		ZH: "Unlock 在等什么？",
	}
	whichZnode = lang.Text{
		EN: "which znode must be deleted so that the lock is free, and what deletes it?",
		ZH: "哪个 znode 删除以后，锁才空闲？由谁删除它？",
	}
	whoTellsB = lang.Text{
		EN: "what notifies B that it is its turn, and what does B do then?",
		ZH: "由谁通知 B 轮到它了？B 接着做什么？",
	}
	whatMakesBRest = lang.Text{
		EN: "what makes B pause between two requests, and what ends the pause?",
		ZH: "什么让 B 在两个请求之间等待？什么让它不再等？",
	}
)

// enoughAnswers is how many answers of the server the first question waits for a call that has no
// other client to wait for. On a quiet machine the server gives 50 answers a second.
const enoughAnswers = 100

// A waiter that polls should pause between two requests. If it sends more than tooMany requests
// without a pause during one look, it never pauses. If it sends few or none, it pauses. Between
// the two the check looks again: on a busy machine a waiter that never pauses is slow for a while,
// and a waiter with a ticker sends some requests without a pause.
const (
	look    = 250 * time.Millisecond
	tooMany = 25 // more requests without a pause in one look: the waiter never pauses
	few     = 5  // at most so many without a pause in one look: the waiter pauses
	looks   = 8  // at most
)

// use checks what every lock must be able to do. So a lock that hangs gets a verdict in a few
// seconds, and in plain words.
func (e Exercise) use(server *zkserver.Server, lock property.Subject) answer {
	var u usage
	r := property.CheckUntil(context.Background(), patienceAlone, server, lock, property.New(
		lang.Text{}, lang.Text{}, lang.Text{},
		func(s *property.Story) {
			u.Story = s
			u.tell(e, lock)
		},
	))
	a := answer{question: canBeUsed, name: e.nameOf(canBeUsed), verdict: r.Verdict, seen: r.Evidence}
	if a.isStuck() {
		a.ask = whichCall
	} else {
		a.ask, a.fits, a.hints = u.ask, u.ask, u.hints
	}
	return a
}

// usage is the story of two clients that use a lock.
type usage struct {
	*property.Story
	ask   lang.Text // the question for the learner if the story fails
	hints string    // the section of hints that fits; "": the exercise's first one
}

func (u *usage) fails(ask lang.Text, evidence string, args ...any) {
	u.ask = ask
	u.Fails(evidence, args...)
}

// comes reports whether something happens soon.
func (u *usage) comes(happens func() bool) bool { return u.SoonAfter(enoughAnswers, happens) }

// tell lets A lock, B call Lock, and A unlock. The New of a step promises that it sends nothing.
func (u *usage) tell(e Exercise, lock property.Subject) {
	seat := property.Seat{Path: u.Root + "/lock"}
	a, b := u.JoinAs("A", seat), u.JoinAs("B", seat)
	mark := a.Tap.Mark()
	lock.At(u.Zoo, a, u.Root+"/another")
	if sent := a.Asked(mark); e.IsStep() && len(sent) > 0 {
		u.fails(whyNewSends, "your New has sent requests: %v", sent)
	}
	first := a.Start()
	if !u.comes(first.Returned) {
		u.fails(whatLockWaitsFor,
			"nobody held the lock, A called Lock, and it does not return; A sent %d requests", requests(a, 0))
	}
	if err := first.Err(); err != nil {
		u.fails(whatError, "nobody held the lock, and A's Lock returned: %v", err)
	}
	mark = b.Tap.Mark()
	second := b.Start()
	u.comes(func() bool {
		silently, polls := b.Tap.Waiting(mark)
		return silently || polls || second.Returned()
	})
	u.rests(second, mark)

	mark = b.Tap.Mark()
	released := u.Go(a.Client, func(context.Context) error { return first.Unlock() })
	if !u.comes(released.Returned) {
		u.fails(whatUnlockWaitsFor, "A held the lock and called Unlock, which does not return")
	}
	u.hints = property.OnlyHolder.String() // from here on, Lock has worked, and Unlock may not
	if err := released.Err(); errors.Is(err, zk.ErrNotEmpty) {
		u.fails(whichChildren, "A held the lock, and its Unlock returned: %v", err)
	} else if err != nil {
		u.fails(whatError, "A held the lock, and its Unlock returned: %v", err)
	}
	if u.comes(second.Returned) {
		u.Holds("A locked, B waited, A unlocked, and B got the lock")
	}
	for _, znode := range a.Tap.Done(wiretap.Create) {
		session, there := u.Owner(znode)
		isDirectory := session == 0 && !lock.Znode
		if there && !isDirectory {
			u.fails(whichZnode,
				"A's Unlock returned nil, and its znode still exists: %s", znode)
		}
	}
	u.hints = notWoken
	u.fails(whoTellsB,
		"nobody was woken after the release: A has released the lock, and B still waits; since then B sent %d requests",
		requests(b, mark))
}

// rests fails the story if a waiter that polls does not pause between two requests.
func (u *usage) rests(waiting *zktest.Turn, mark int) {
	if silently, _ := waiting.Tap.Waiting(mark); silently {
		return
	}
	for range looks {
		begin := waiting.Tap.Mark()
		withoutRest := func() int {
			again, _ := wiretap.Unpaused(waiting.Tap.Since(begin))
			return again
		}
		isPlain := func() bool { return withoutRest() > tooMany || waiting.Returned() }
		for end := time.Now().Add(look); time.Now().Before(end) && !isPlain(); {
			time.Sleep(2 * time.Millisecond)
		}
		if withoutRest() > tooMany {
			u.fails(whatMakesBRest,
				"A held the lock, and B sent more than %d requests in %v, without a pause between them", tooMany, look)
		}
		if withoutRest() <= few {
			return
		}
	}
}

// requests counts what a client has sent since a mark.
func requests(m *zktest.Member, mark int) int { return wiretap.Count(m.Tap.Since(mark)).All() }
