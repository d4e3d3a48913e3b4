package zktest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Ensemble is three real ZooKeeper servers that together are one. Any two of
// them, a majority, can serve without the third.
type Ensemble struct {
	*Server         // all three: Stop ends them; Word and Mntr ask the first, a Peer has its own
	Members []*Peer // by their ID: 1, 2, 3

	links map[[2]int]*link // from, to: of a local one
}

// Peer is one member of an Ensemble. Its methods are not for use by two
// goroutines at once; those of two Peers are.
type Peer struct {
	*Server // at its own address alone; its Stop does nothing
	ID      int

	host host
}

// A host is what a member runs on.
type host interface {
	start(ctx context.Context) error // returns when it serves
	kill() error
	quit() error
	pause() error
	resume() error
	cutOff() error
	rejoin() error
}

// StartEnsemble starts three servers, and returns when each one serves, as
// leader or as follower. lines go into each one's zoo.cfg and win over the
// usual ones.
//
// The servers are private ones, as those of StartWith: processes of a local
// installation, else containers; ZK_BACKEND (local, docker) forces one of the
// two. None outlives this process.
func StartEnsemble(ctx context.Context, lines ...string) (*Ensemble, error) {
	var ensemble *Ensemble
	err := firstOf(private, func(b backend) (err error) {
		ensemble, err = b.three(ctx, lines)
		return err
	})
	return ensemble, err
}

// Kill ends the server as kill -9 does, paused or not. It returns when the
// server has ended.
func (m *Peer) Kill() error { return m.named("kill", m.host.kill()) }

// Quit lets the server end in good order. It returns when the server has
// ended, and so must not be called while it is paused.
func (m *Peer) Quit() error { return m.named("quit", m.host.quit()) }

// Pause stops the server in the midst of what it does: it still accepts
// connections, as its system does that for it, but answers nothing.
func (m *Peer) Pause() error { return m.named("pause", m.host.pause()) }

// Resume lets a paused server go on, as if no time had passed.
func (m *Peer) Resume() error { return m.named("resume", m.host.resume()) }

// Restart starts the server again after Kill or Quit, at the same address and
// with the data it had. It returns when the server serves, for which it needs
// another one: of several, restart all at the same time. A server that is cut
// off stays so.
func (m *Peer) Restart(ctx context.Context) error { return m.named("restart", m.host.start(ctx)) }

// StartAgain kills members of an ensemble, and restarts them all at the same time.
func StartAgain(ctx context.Context, members []*Peer) (err error) {
	for _, m := range members {
		err = errors.Join(err, m.Kill())
	}
	restarted := make(chan error)
	for _, m := range members {
		go func() { restarted <- m.Restart(ctx) }()
	}
	for range members {
		err = errors.Join(err, <-restarted)
	}
	return err
}

// CutOff parts the server from the other members, as a network does that is
// partitioned: nothing passes, either way, and no connection is closed by it.
// Clients still reach the server.
func (m *Peer) CutOff() error { return m.named("cut off", m.host.cutOff()) }

// Rejoin undoes CutOff.
func (m *Peer) Rejoin() error { return m.named("rejoin", m.host.rejoin()) }

func (m *Peer) named(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s member %d: %w", what, m.ID, err)
	}
	return nil
}

// A role is what a member says it is at present.
const (
	leads   = "leader"
	follows = "follower"
)

// role asks the member. With the majority unreachable it has none. followers
// is the number of those who follow a leader, as it sees it.
func (m *Peer) role() (role string, followers int64) {
	text, err := ask(m.Addr, "mntr", 300*time.Millisecond)
	if err != nil {
		return "", 0
	}
	_, role, _ = strings.Cut(text, "zk_server_state\t")
	role, _, _ = strings.Cut(role, "\n")
	return role, counters(text)["zk_synced_followers"]
}

// Leader returns the one member that leads, as soon as there is one, and only
// one, that a majority follows.
func (e *Ensemble) Leader(ctx context.Context) (*Peer, error) {
	leader, _, err := e.roles(ctx)
	return leader, err
}

// Followers returns the members that follow at present, as soon as there is a
// leader.
func (e *Ensemble) Followers(ctx context.Context) ([]*Peer, error) {
	_, followers, err := e.roles(ctx)
	return followers, err
}

func (e *Ensemble) roles(ctx context.Context) (leader *Peer, followers []*Peer, err error) {
	err = poll(ctx, func() error {
		var leaders []*Peer
		followers = nil
		majority := false
		for _, m := range e.Members {
			switch role, n := m.role(); role {
			case leads:
				leaders = append(leaders, m)
				majority = 1+int(n) > len(e.Members)/2
			case follows:
				followers = append(followers, m)
			}
		}
		if len(leaders) != 1 || !majority || len(followers) == 0 {
			return fmt.Errorf("no leader of a majority: %d lead, %d follow", len(leaders), len(followers))
		}
		leader = leaders[0]
		return nil
	})
	return leader, followers, err
}

// Serving returns when every member serves, as leader or as follower. Its
// error names those that do not.
func (e *Ensemble) Serving(ctx context.Context) error {
	return poll(ctx, func() error {
		var idle []string
		for _, m := range e.Members {
			if role, _ := m.role(); role != leads && role != follows {
				idle = append(idle, fmt.Sprintf("member %d (%s) does not serve", m.ID, m.Addr))
			}
		}
		if len(idle) > 0 {
			return errors.New(strings.Join(idle, ", "))
		}
		return nil
	})
}

// poll calls try until it succeeds. When ctx ends first, it returns try's
// error.
func poll(ctx context.Context, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Hold stops all that one member sends to another, until release; what the
// other sends back still passes. It is for local ensembles only.
func (e *Ensemble) Hold(from, to *Peer) (release func(), err error) {
	link, ok := e.links[[2]int{from.ID, to.ID}]
	if !ok {
		return nil, fmt.Errorf("no link from member %d to %d can be held: this is for local servers, and %s is not one; install ZooKeeper: %s", from.ID, to.ID, from.Origin, InstallCommand())
	}
	return link.hold(), nil
}

// Passed returns how many bytes have passed from one member to another so far.
// It is for local ensembles only; of containers it knows nothing and returns 0.
func (e *Ensemble) Passed(from, to *Peer) int64 {
	link, ok := e.links[[2]int{from.ID, to.ID}]
	if !ok {
		return 0
	}
	link.mu.Lock()
	defer link.mu.Unlock()
	return link.passed
}

// startAll starts the hosts of all members at the same time and makes them an
// Ensemble. stop ends them, and is called if they do not all serve.
func startAll(ctx context.Context, origin string, members []*Peer, stop func() error) (*Ensemble, error) {
	e := &Ensemble{Server: &Server{stop: sync.OnceValue(stop)}, Members: members}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	failed := make(chan error)
	for _, m := range members {
		go func() {
			err := m.named("start", m.host.start(ctx))
			if err != nil {
				cancel() // the others wait in vain
			}
			failed <- err
		}()
	}
	var err error // the first: the others may have failed for it
	for range members {
		err = cmp.Or(err, <-failed)
	}
	if err == nil {
		err = e.Serving(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, e.Stop())
	}
	for _, m := range members {
		e.servers = append(e.servers, m.Addr)
	}
	e.Addr = e.servers[0]
	e.Origin = fmt.Sprintf("%s, %s, ensemble on %s", origin, e.version(), strings.Join(e.servers, ","))
	for _, m := range members {
		m.Origin = fmt.Sprintf("member %d of %s", m.ID, e.Origin)
	}
	return e, nil
}

// ensembleConfig is what a member's zoo.cfg has besides config. The limits
// are in ticks: a follower may be silent for a second.
func ensembleConfig(servers, lines []string) []string {
	return slices.Concat([]string{"initLimit=20", "syncLimit=10"}, servers, lines)
}
