package leased

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// candidate is a client of an election, and its call of Campaign.
type candidate struct {
	*zktest.Client
	election *Election
	leads    chan term  // has a value when it begins to lead
	resign   chan error // what lead is to return
	ended    chan error // what Campaign has returned
}

// term is what lead is called with.
type term struct {
	ctx   context.Context
	token int64
}

func newCandidate(z *zktest.Zoo, name string) *candidate {
	s, client := labelled(z, name)
	return &candidate{
		Client: client, election: NewElection(s, z.Root+"/leader"),
		leads: make(chan term, 1), resign: make(chan error, 1), ended: make(chan error, 2),
	}
}

// campaign calls Campaign, and returns when the candidate is queued. The queue then has this length.
func (c *candidate) campaign(z *zktest.Zoo, ctx context.Context, length int) {
	go func() {
		c.ended <- c.election.Campaign(ctx, func(ctx context.Context, token int64) error {
			c.leads <- term{ctx, token}
			select {
			case err := <-c.resign:
				return err
			case <-z.Ctx.Done(): // the test has ended
				return z.Ctx.Err()
			}
		})
	}()
	z.Await(c.Name+" to stand", func() bool { return len(z.Names(z.Root+"/leader")) == length })
}

// One of three candidates leads, and everybody can learn which one. When it resigns, the next one leads, with
// a greater token.
func TestOneOfSeveralCandidatesLeads(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b, c := newCandidate(z, "a"), newCandidate(z, "b"), newCandidate(z, "c")
	nobody, err := c.election.Leader(z.Ctx)
	require.NoError(t, err)
	require.Empty(t, nobody)

	for i, candidate := range []*candidate{a, b, c} {
		candidate.campaign(z, z.Ctx, i+1)
	}
	last := int64(0)
	lost := errors.New("I have had enough")
	for _, leading := range []*candidate{a, b, c} {
		now := zktest.AwaitChan(z, leading.Name+" to lead", leading.leads)
		require.Greater(t, now.token, last, "the token of %s", leading.Name)
		last = now.token
		for _, asks := range []*candidate{a, b, c} {
			z.Barrier(asks.Client)
			mark := asks.Tap.Mark()
			who, err := asks.election.Leader(z.Ctx)
			require.NoError(t, err)
			require.Equal(t, leading.Name, who, "asked by %s", asks.Name)
			asked := asks.Requests(mark)
			made := [2]int{asked[wiretap.GetChildren], asked[wiretap.GetData]}
			require.Equal(t, [2]int{1, 1}, made, "lists and reads of Leader")
		}
		require.NoError(t, now.ctx.Err(), "%s leads", leading.Name)
		require.Empty(t, b.leads, "nobody leads beside %s", leading.Name)
		require.Empty(t, c.leads, "nobody leads beside %s", leading.Name)
		leading.resign <- lost
		require.Equal(t, lost.Error(), zktest.AwaitChan(z, "Campaign to return", leading.ended).Error())
		require.ErrorIs(t, context.Cause(now.ctx), ErrNotHeld, "the context of a time of leading that is over")
	}
	z.Await("nobody to lead", func() bool {
		who, err := c.election.Leader(z.Ctx)
		return err == nil && who == ""
	})
}

// Requests counts the candidate's requests since the mark.
func (c *candidate) Requests(mark int) map[wiretap.Op]int {
	return wiretap.Count(c.Tap.Since(mark)).Requests
}

// The leader's session ends. The leader is notified, and the next candidate leads, although the first one's
// lead has not returned.
func TestALeaderIsToldThatItLeadsNoMore(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := newCandidate(z, "a"), newCandidate(z, "b")
	a.campaign(z, z.Ctx, 1)
	first := zktest.AwaitChan(z, "a to lead", a.leads)
	b.campaign(z, z.Ctx, 2)
	z.EndSession(a.Client)
	zktest.AwaitChan(z, "a to be notified", first.ctx.Done())
	requireReason(t, context.Cause(first.ctx), ReasonExpired)
	next := zktest.AwaitChan(z, "b to lead", b.leads)
	require.Greater(t, next.token, first.token)

	tooLate := errors.New("too late")
	a.resign <- tooLate
	err := zktest.AwaitChan(z, "a's Campaign to return", a.ended)
	require.ErrorIs(t, err, tooLate)
	requireReason(t, err, ReasonExpired)
	b.resign <- nil
	require.NoError(t, zktest.AwaitChan(z, "b's Campaign to return", b.ended))
}

// The leadership is lost, and lead returns the reason. The error of Campaign contains it only once.
func TestALossOfTheLeadIsSaidOnce(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := newCandidate(z, "a")
	a.campaign(z, z.Ctx, 1)
	leads := zktest.AwaitChan(z, "a to lead", a.leads)
	z.EndSession(a.Client)
	zktest.AwaitChan(z, "a to be notified", leads.ctx.Done())
	a.resign <- context.Cause(leads.ctx)
	err := zktest.AwaitChan(z, "Campaign to return", a.ended)
	requireReason(t, err, ReasonExpired)
	require.Equal(t, 1, strings.Count(err.Error(), ErrLost.Error()), err.Error())
	require.ErrorContains(t, err, z.Root+"/leader/", "the znode")

	loss := &LostError{ReasonExpired, "a test"}
	unlock, lead := fmt.Errorf("unlock: %w", loss), fmt.Errorf("pay: %w", loss)
	require.Equal(t, unlock, joined(loss, unlock))
	require.Equal(t, lead, joined(lead, unlock))
	refused := fmt.Errorf("unlock: %w", fmt.Errorf("%w; %w", zk.ErrNoAuth, loss))
	require.Equal(t, refused, joined(loss, refused))
	require.Equal(t, errors.Join(lead, refused), joined(lead, refused), "the refusal is not left out")
}

// Campaign within lead is re-entry: this process already leads. With another context the process waits for
// itself.
func TestCampaignWithinLead(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := newCandidate(z, "a")
	inner := errors.New("the inner one")
	err := a.election.Campaign(z.Ctx, func(ctx context.Context, token int64) error {
		mark := a.Tap.Mark()
		err := a.election.Campaign(ctx, func(again context.Context, sameToken int64) error {
			require.Equal(t, token, sameToken)
			return inner
		})
		require.ErrorIs(t, err, inner)
		require.NoError(t, ctx.Err(), "a leads on")
		require.Zero(t, a.Requests(mark)[wiretap.Create], "znodes of the inner Campaign")

		other, cancel := context.WithCancel(z.Ctx)
		ended := make(chan error, 1)
		go func() {
			ended <- a.election.Campaign(other, func(context.Context, int64) error { return inner })
		}()
		z.Await("a to stand behind itself", func() bool { return len(a.Tap.Watched()) == 1 })
		cancel()
		err = zktest.AwaitChan(z, "the Campaign that is given up", ended)
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, inner, "a leads beside itself")
		return nil
	})
	require.NoError(t, err)
	z.Await("nothing to be left", func() bool { return len(z.Names(z.Root+"/leader")) == 0 })
}

// One candidate leads, and one waits, when their context ends. Both calls return, and leave no znode behind.
func TestCampaignEndsWithItsContext(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b := newCandidate(z, "a"), newCandidate(z, "b")
	ctx, end := context.WithCancel(z.Ctx)
	a.campaign(z, ctx, 1)
	leads := zktest.AwaitChan(z, "a to lead", a.leads)
	b.campaign(z, ctx, 2)
	end()
	zktest.AwaitChan(z, "a to be notified", leads.ctx.Done())
	a.resign <- nil
	require.NoError(t, zktest.AwaitChan(z, "a's Campaign to return", a.ended))
	require.ErrorIs(t, zktest.AwaitChan(z, "b's Campaign to return", b.ended), context.Canceled)
	z.Await("nothing to be left", func() bool { return len(z.Names(z.Root+"/leader")) == 0 })
	require.Empty(t, b.leads, "b was never called")
}

// A leader that panics resigns.
func TestALeaderThatPanicsResigns(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a := newCandidate(z, "a")
	require.Panics(t, func() {
		_ = a.election.Campaign(z.Ctx, func(context.Context, int64) error { panic("a mistake") })
	})
	require.Empty(t, z.Names(z.Root+"/leader"))
	require.Error(t, a.election.Campaign(z.Ctx, nil), "without a function that leads")
	require.Error(t, new(Election).Campaign(z.Ctx, func(context.Context, int64) error { return nil }))
	_, err := new(Election).Leader(z.Ctx)
	require.Error(t, err)
}

// An observer learns who leads: at first that nobody does, and then of each new term.
func TestAnObserverLearnsWhoLeads(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, b, c := newCandidate(z, "a"), newCandidate(z, "b"), newCandidate(z, "c")
	told, ended := make(chan string, 10), make(chan error, 1)
	ctx, end := context.WithCancel(z.Ctx)
	go func() { ended <- c.election.Observe(ctx, func(leader string) { told <- leader }) }()
	learns := func(want string) {
		t.Helper()
		require.Equal(t, want, zktest.AwaitChan(z, "the observer to learn of a change", told))
	}
	learns("") // there is no directory yet
	a.campaign(z, z.Ctx, 1)
	learns("a")
	b.campaign(z, z.Ctx, 2)
	zktest.AwaitChan(z, "a to lead", a.leads)
	a.resign <- nil
	learns("b")
	zktest.AwaitChan(z, "b to lead", b.leads)
	z.EndSession(c.Client) // its watches end with it
	z.Await("the observer to be connected again", func() bool { return c.election.lock.q.s.Stats().Connected })
	b.resign <- nil
	learns("")
	b.campaign(z, z.Ctx, 1)
	learns("b")
	zktest.AwaitChan(z, "b to lead again", b.leads)
	require.Empty(t, told)
	end()
	require.ErrorIs(t, zktest.AwaitChan(z, "Observe to return", ended), context.Canceled)
	b.resign <- nil
	for range 2 {
		require.NoError(t, zktest.AwaitChan(z, "b's Campaigns to return", b.ended))
	}
	require.Error(t, new(Election).Observe(z.Ctx, func(string) {}))
	elsewhere := NewElection(c.election.lock.q.s, "leader")
	require.ErrorContains(t, elsewhere.Observe(z.Ctx, func(string) {}), "want an absolute path below the root")
}

// observe lets a client observe the election. It returns a channel with what it learns.
func (c *candidate) observe(z *zktest.Zoo) (told chan string) {
	told = make(chan string, 10)
	go func() { _ = c.election.Observe(z.Ctx, func(leader string) { told <- leader }) }()
	return told
}

// Nobody leads. While the observer sets its watch, the directory is created, or a candidate begins to lead.
func TestAnObserverMissesNothingWhileItSetsItsWatch(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"the directory is created", "a begins to lead"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			z := zktest.New(t)
			a, c := newCandidate(z, "a"), newCandidate(z, "c")
			mkdir := func() {
				_, err := z.Observer().Create(z.Root+"/leader", nil, 0, zk.WorldACL(zk.PermAll))
				require.NoError(t, err)
			}
			watches := c.Tap.HoldRequest(wiretap.Exists, 1) // a watch on the creation of the directory
			if what == "a begins to lead" {
				mkdir()
				watches = c.Tap.HoldRequest(wiretap.GetChildren, 2) // a watch on the directory's children
			}
			told := c.observe(z)
			zktest.AwaitChan(z, "the observer to set its watch", watches.Sprung())
			if what == "a begins to lead" {
				a.campaign(z, z.Ctx, 1)
				watches.Let()
			} else {
				mkdir()
				watches.Let()
				require.Equal(t, "", zktest.AwaitChan(z, "the observer to learn that nobody leads", told))
				a.campaign(z, z.Ctx, 1)
			}
			require.Equal(t, "a", zktest.AwaitChan(z, "the observer to learn who leads", told))
			a.resign <- nil
		})
	}
}

// When watches are lost, as by a fault of the client library, the observer looks again. It calls changed only after a
// change.
func TestAnObserverWhoseWatchesAreLostLooksAgain(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	a, c := newCandidate(z, "a"), newCandidate(z, "c")
	a.campaign(z, z.Ctx, 1)
	told := c.observe(z)
	require.Equal(t, "a", zktest.AwaitChan(z, "the observer to learn who leads", told))
	mark, client := c.Tap.Mark(), &c.election.lock.q.s.client
	for times := range 2 {
		client.mu.Lock()
		client.loseWatches()
		client.mu.Unlock()
		z.Await("the observer to look again", func() bool { return c.Requests(mark)[wiretap.GetChildren] > times })
	}
	require.Empty(t, told)
	a.resign <- nil
}
