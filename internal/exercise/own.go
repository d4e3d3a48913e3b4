package exercise

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"zklock/internal/lang"
	"zklock/internal/process"
	"zklock/internal/property"
	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

// A Client is one of the clients in a learner's own test.
type Client struct {
	story  *property.Story
	member *zktest.Member
	call   *zktest.Turn
	outer  []*zktest.Turn // the calls whose holds enclose the last call
}

// Locks calls Lock, which must return with the lock.
func (c *Client) Locks() {
	c.call = c.member.Start()
	c.GetsIt()
}

// LocksAgain calls Lock once more within the hold, which must succeed at once. One more call to
// Unlocks must follow.
func (c *Client) LocksAgain() {
	c.outer = append(c.outer, c.call)
	c.call = c.member.StartIn(c.call.Context())
	c.GetsIt()
}

// WaitsToRead calls RLock, which must not return.
func (c *Client) WaitsToRead() {
	c.call = c.member.Reader.Start()
	c.waits(c.call.Waits())
}

// Waits calls Lock, which must not return.
func (c *Client) Waits() {
	c.call = c.member.Start()
	c.waits(c.call.Waits())
}

// StillWaits checks that the call has not returned, after all that has happened so far.
func (c *Client) StillWaits() { c.waits(c.call.StillWaits()) }

func (c *Client) waits(how zktest.Wait) {
	if how != zktest.Returned {
		return
	}
	c.story.FailsIf(c.call.Err() != nil, "%s's Lock returned: %v", c.member.Name, c.call.Err())
	c.story.Fails("%s should wait, but it holds the lock", c.member.Name)
}

// GetsIt checks that the call soon returns, and that the client holds the lock.
func (c *Client) GetsIt() {
	name := c.member.Name
	c.story.FailsIf(!c.story.Soon(c.call.Returned), "%s should get the lock, but it still waits", name)
	c.story.FailsIf(c.call.Err() != nil, "%s's Lock returned: %v", name, c.call.Err())
}

// Unlocks calls Unlock, which must return nil.
func (c *Client) Unlocks() {
	err := c.call.Unlock()
	c.story.FailsIf(err != nil, "%s's Unlock returned: %v", c.member.Name, err)
	if last := len(c.outer) - 1; last >= 0 {
		c.call, c.outer = c.outer[last], c.outer[:last]
	}
}

// Crashes makes the client crash, and returns when the server has ended its session.
func (c *Client) Crashes() { c.story.Expire(c.member.Client) }

// HasOwn reports whether the learner has written a test of their own: whether the file differs from the starter's. An
// exercise without such a test has none to wait for.
func (e Exercise) HasOwn() bool {
	if _, asks := mistakes[e.Name]; !asks {
		return true
	}
	const file = "lock_test.go"
	starter, err := os.ReadFile(filepath.Join(e.starter(), file))
	mine, wrong := os.ReadFile(filepath.Join(e.Dir(), file))
	return errors.Join(err, wrong) != nil || !bytes.Equal(mine, starter)
}

// Own runs a learner's own test with two locks, once TestLock has found nothing wrong with the
// learner's lock. The test must pass with that lock. It must fail with a lock that has a published
// mistake.
func Own(t *testing.T, e Exercise, mine property.Subject, test func(a, b, c *Client)) {
	if process.Plays(byMistake) {
		tellMistake(t, mine, test)
	}
	p := progressIn(".")
	if p.Missing == everyOrder {
		t.Skip("no pass yet: TestLock says in which interleaving the lock is wrong")
	}
	if p.Held < len(e.Properties) {
		t.Skip("no pass yet: first write the lock; TestLock says what it lacks")
	}
	fmt.Fprintln(t.Output(), InWords(e.AllHold(p)))
	server, err := zktest.Shared()
	if err != nil {
		t.Fatal(err)
	}
	wrong := mistakes[e.Name]
	r, err := e.askMistake(t, server, wrong.variant())
	if err != nil {
		t.Fatal(err)
	}
	switch r.Verdict {
	case property.No: // as it should be
	case property.Stuck:
		t.Error(InWords(lang.Of(
			"no verdict: with %v, a published mistake (%v), your test did not end. Is this machine busy? What happened: %v",
			"没有结论：%v 是公开发表过的错误（%v），你的测试用它运行，一直没有结束。是不是这台机器太忙？测试在等：%v",
			wrong.key, wrong.what, r.Evidence)))
	default:
		t.Error(InWords(lang.Of(
			"your test should fail with %v, a published mistake: %v. Its result is: %v %v",
			"%v 是公开发表过的错误（%v），你的测试用它运行，应该失败。现在的结果是：%v %v",
			wrong.key, wrong.what, string(r.Verdict), r.Evidence)))
	}
	if r := askOwn(t.Context(), server, mine, test); r.Verdict != property.Yes {
		t.Error(InWords(lang.Of("your test should pass with your own lock. Its result is: %v %v",
			"你的测试用你自己的锁运行，应该通过。现在的结果是：%v %v", string(r.Verdict), r.Evidence)))
	}
}

// askOwn runs a learner's own test with a lock. If there is no verdict, the test runs once more,
// alone.
func askOwn(
	ctx context.Context,
	server *zkserver.Server,
	lock property.Subject,
	test func(a, b, c *Client),
) property.Result {
	ask := func(patience time.Duration) property.Result {
		return property.CheckUntil(ctx, patience, server, lock, told(test))
	}
	r := property.Beside(func() property.Result { return ask(patience) })
	return r.OrAlone(func() property.Result { return ask(patienceAlone) })
}

// told makes a property whose story is the learner's test.
func told(test func(a, b, c *Client)) *property.Property {
	return property.New(lang.Text{EN: "the learner's own test"}, lang.Text{}, lang.Text{}, func(s *property.Story) {
		client := func(name string) *Client { return &Client{story: s, member: s.Join(name)} }
		test(client("A"), client("B"), client("C"))
		s.Holds("the test has passed")
	})
}
