package storm

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"time"

	"zklock/internal/wiretap"
	"zklock/internal/zkserver"
)

// A serverFault is a fault of one server, or of several.
type serverFault struct {
	name   string
	strike func(ctx context.Context, at servers, d time.Duration) error
}

// servers are the members of the ensemble, by their present roles.
type servers struct {
	all       []*zkserver.Peer
	leader    *zkserver.Peer
	followers []*zkserver.Peer
	holders   func() *zkserver.Peer // to which the holder of a lock is connected
}

var serverFaults = []serverFault{
	{"leader killed", func(ctx context.Context, at servers, d time.Duration) error {
		err := at.leader.Kill()
		time.Sleep(d)
		return errors.Join(err, at.leader.Restart(ctx))
	}},
	{"leader paused", func(_ context.Context, at servers, d time.Duration) error { return pause(at.leader, d) }},
	{"follower paused", func(_ context.Context, at servers, d time.Duration) error {
		return pause(at.followers[0], d)
	}},
	{"all servers restarted", func(ctx context.Context, at servers, _ time.Duration) error {
		return zkserver.StartAgain(ctx, at.all)
	}},
	{"holder's server partitioned from the others", func(_ context.Context, at servers, d time.Duration) error {
		server := at.holders()
		server.CutOff()
		time.Sleep(sessionTimeout + d) // longer than a session lives
		server.Rejoin()
		return nil
	}},
	{"leader partitioned, the others elect another", func(ctx context.Context, at servers, d time.Duration) error {
		at.leader.CutOff()
		err := zkserver.StartAgain(ctx, at.followers)
		time.Sleep(sessionTimeout + d)
		at.leader.Rejoin()
		return err
	}},
}

func pause(server *zkserver.Peer, d time.Duration) error {
	err := server.Pause()
	time.Sleep(d)
	return errors.Join(err, server.Resume())
}

// A clientFault is a fault of one client's connections, until they are restored. Without a strike,
// the process is paused instead.
type clientFault struct {
	name   string
	strike func(*wiretap.Tap)
}

// A Fault is one that a client process has to make.
type Fault struct {
	Name   string
	Client int
	For    time.Duration
}

const stopped = "process paused"

var clientFaults = []clientFault{
	{"client disconnected", (*wiretap.Tap).Cut},
	{"client's network silent", (*wiretap.Tap).Silence},
	{"connections closed", (*wiretap.Tap).HangUp},
	{"requests arrive late", func(t *wiretap.Tap) { t.HoldRequest(wiretap.Any, 1) }},
	{"replies arrive late", func(t *wiretap.Tap) { t.HoldReply(wiretap.Any, 1) }},
	{"reply to create lost", func(t *wiretap.Tap) { t.LoseReply(wiretap.Create, 1) }},
	{"reply to delete lost", func(t *wiretap.Tap) { t.LoseReply(wiretap.Delete, 1) }},
	{stopped, nil},
}

// deal yields the faults of a deck forever, shuffled like cards: each fault is dealt once before any is dealt
// twice.
func deal[F any](random *rand.Rand, deck []F) iter.Seq[F] {
	return func(yield func(F) bool) {
		for {
			for _, card := range random.Perm(len(deck)) {
				if !yield(deck[card]) {
					return
				}
			}
		}
	}
}
