package zkserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
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

	links map[[2]int]*link // from, to
}

// Peer is one member of an Ensemble. Its methods are not for use by two
// goroutines at once; those of two Peers are.
type Peer struct {
	*Server // at its own address alone; its Stop does nothing
	ID      int

	links  []*link  // to and from the others
	rejoin []func() // not nil: it is cut off
}

// StartEnsemble starts three servers, and returns when each one serves, as
// leader or as follower. lines go into each one's zoo.cfg and win over the
// usual ones.
//
// They are processes of a local installation, whatever ZK_BACKEND says, and
// end with this process.
func StartEnsemble(ctx context.Context, lines ...string) (*Ensemble, error) {
	e, err := firstOf([]backend{local}, func(backend) (*Ensemble, error) {
		found, err := findLocal()
		if err != nil {
			return nil, err
		}
		return onFreePorts(9, func(ports []int) (*Ensemble, error) {
			return found.launchEnsemble(ctx, ports, lines)
		})
	})
	if err != nil {
		err = fmt.Errorf("an ensemble is three processes on this machine: %w", err)
	}
	return e, err
}

// launchEnsemble runs the three servers. Each reaches the others through
// proxies in this process, which can hold what goes from one to another.
func (found installation) launchEnsemble(ctx context.Context, ports []int, lines []string) (*Ensemble, error) {
	home, remove, err := newHome()
	if err != nil {
		return nil, err
	}
	proxies := newProxies()
	e := &Ensemble{Server: &Server{}, links: make(map[[2]int]*link)}
	e.stop = sync.OnceValue(func() error {
		for _, m := range e.Members {
			m.process.kill()
		}
		proxies.close()
		return remove()
	})
	ids := []int{1, 2, 3}
	for _, from := range ids {
		for _, to := range ids {
			if from != to {
				e.links[[2]int{from, to}] = newLink(proxies.ctx)
			}
		}
	}
	client, quorum, election := ports[0:3], ports[3:6], ports[6:9]
	proxy := func(from, to, port int) int {
		at, failed := proxies.open(fmt.Sprintf("127.0.0.1:%d", port), e.links[[2]int{from, to}], e.links[[2]int{to, from}])
		err = errors.Join(err, failed)
		return at
	}
	for i, id := range ids {
		config := []string{"initLimit=20", "syncLimit=10"} // in ticks: a follower may be silent for a second
		for j, other := range ids {
			// A server tells the others where to call it back. They ignore
			// 0.0.0.0 and do so where their own configuration says.
			host, q, e := "0.0.0.0", quorum[j], election[j]
			if id != other {
				host, q, e = "127.0.0.1", proxy(id, other, q), proxy(id, other, e)
			}
			config = append(config, fmt.Sprintf("server.%d=%s:%d:%d", other, host, q, e))
		}
		p := &process{installation: found, dir: filepath.Join(home, fmt.Sprint(id)), addr: fmt.Sprintf("127.0.0.1:%d", client[i])}
		err = errors.Join(err, p.prepare(zooCfg(p.data(), "127.0.0.1", client[i], append(config, lines...)),
			map[string]string{"data/myid": fmt.Sprintln(id)}))
		m := &Peer{Server: &Server{Addr: p.addr, servers: []string{p.addr}, process: p}, ID: id}
		for pair, link := range e.links {
			if slices.Contains(pair[:], id) {
				m.links = append(m.links, link)
			}
		}
		e.Members = append(e.Members, m)
		e.servers = append(e.servers, m.Addr)
	}
	if err == nil {
		err = e.startAll(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, e.Stop())
	}
	e.Addr = e.servers[0]
	e.Origin = fmt.Sprintf("%s, %s, ensemble on %s", found.name, e.version(), strings.Join(e.servers, ","))
	for _, m := range e.Members {
		m.Origin = fmt.Sprintf("member %d of %s", m.ID, e.Origin)
	}
	return e, nil
}

// startAll starts all members at the same time.
func (e *Ensemble) startAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	failed := make(chan error)
	for _, m := range e.Members {
		go func() {
			err := m.Restart(ctx)
			if err != nil {
				cancel() // the others wait in vain
			}
			failed <- err
		}()
	}
	var err error // the first: the others may have failed for it
	for range e.Members {
		err = cmp.Or(err, <-failed)
	}
	if err != nil {
		return err
	}
	return e.Serving(ctx)
}

// Kill ends the server as kill -9 does, paused or not. It returns when the
// server has ended.
func (m *Peer) Kill() error { return m.named("kill", m.process.kill()) }

// Quit lets the server end in good order. It returns when the server has
// ended, and so must not be called while it is paused.
func (m *Peer) Quit() error { return m.named("quit", m.process.quit()) }

// Pause stops the server in the midst of what it does: it still accepts
// connections, as its system does that for it, but answers nothing.
func (m *Peer) Pause() error { return m.named("pause", m.process.pause()) }

// Resume lets a paused server go on, as if no time had passed.
func (m *Peer) Resume() error { return m.named("resume", m.process.resume()) }

// Restart starts the server again after Kill or Quit, at the same address and
// with the data it had. It returns when the server serves, for which it needs
// another one: of several, restart all at the same time. A server that is cut
// off stays so.
func (m *Peer) Restart(ctx context.Context) error { return m.named("start", m.process.start(ctx)) }

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
func (m *Peer) CutOff() {
	if m.rejoin == nil {
		for _, link := range m.links {
			m.rejoin = append(m.rejoin, link.hold())
		}
	}
}

// Rejoin undoes CutOff.
func (m *Peer) Rejoin() {
	for _, release := range m.rejoin {
		release()
	}
	m.rejoin = nil
}

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

// Roles returns the one member that leads, and those that follow at present,
// as soon as one leads, and only one, that a majority follows.
func (e *Ensemble) Roles(ctx context.Context) (leader *Peer, followers []*Peer, err error) {
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
// other sends back still passes.
func (e *Ensemble) Hold(from, to *Peer) (release func()) {
	return e.links[[2]int{from.ID, to.ID}].hold()
}

// Passed returns how many bytes have passed from one member to another so far.
func (e *Ensemble) Passed(from, to *Peer) int64 {
	link := e.links[[2]int{from.ID, to.ID}]
	link.mu.Lock()
	defer link.mu.Unlock()
	return link.passed
}
