package zkserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Ensemble is three real ZooKeeper servers, or another odd number, that together are
// one. A majority of them can serve without the others.
type Ensemble struct {
	*Server         // all of them: Stop ends them; Word and Mntr ask the first, a Peer has its own
	Members []*Peer // by their ID: 1, 2, 3 …

	network *network
}

// Peer is one member of an Ensemble. Its methods are not for use by two
// goroutines at once; those of two Peers are.
type Peer struct {
	*Server // at its own address alone; its Stop does nothing
	*process
	ID int

	network *network
	rejoin  []func() // not nil: it is cut off
}

// StartEnsemble starts three servers, and returns when each one serves, as
// leader or as follower. lines go into each one's zoo.cfg and win over the
// usual ones.
//
// They are processes of a local installation, whatever ZK_BACKEND says, and
// end with this process.
func StartEnsemble(ctx context.Context, lines ...string) (*Ensemble, error) {
	return StartServers(ctx, 3, lines...)
}

// StartServers is StartEnsemble of n servers.
func StartServers(ctx context.Context, n int, lines ...string) (*Ensemble, error) {
	e, err := firstOf([]backend{local}, func(backend) (*Ensemble, error) {
		found, err := findInstallation()
		if err != nil {
			return nil, err
		}
		return onFreePorts(3*n, func(ports []int) (*Ensemble, error) { return found.launchEnsemble(ctx, ports, lines) })
	})
	if err != nil {
		err = fmt.Errorf("an ensemble is %d processes on this machine: %w", n, err)
	}
	return e, err
}

// launchEnsemble runs a server for every three ports. What one sends to another goes through
// a network in this process, which can hold it.
func (i installation) launchEnsemble(ctx context.Context, ports []int, lines []string) (*Ensemble, error) {
	home, remove, err := newHome()
	if err != nil {
		return nil, err
	}
	ids := make([]int, len(ports)/3)
	for i := range ids {
		ids[i] = i + 1
	}
	e := &Ensemble{Server: &Server{}, network: newNetwork(ids...)}
	e.stop = sync.OnceValue(func() error {
		for _, m := range e.Members {
			m.Kill()
		}
		e.network.close()
		return remove()
	})
	for _, id := range ids {
		config := []string{"initLimit=20", "syncLimit=10"} // in ticks: a follower may be silent for a second
		for _, other := range ids {
			// A server tells the others where to call it back. They ignore
			// 0.0.0.0 and do so where their own configuration says.
			quorum, election := ports[len(ids)-1+other], ports[2*len(ids)-1+other]
			address := fmt.Sprintf("0.0.0.0:%d:%d", quorum, election)
			if other != id {
				lead := func(port int) int {
					at, failed := e.network.lead(id, other, port)
					err = errors.Join(err, failed)
					return at
				}
				address = fmt.Sprintf("127.0.0.1:%d:%d", lead(quorum), lead(election))
			}
			config = append(config, fmt.Sprintf("server.%d=%s", other, address))
		}
		p, failed := i.prepare(filepath.Join(home, strconv.Itoa(id)), ports[id-1], append(config, lines...),
			map[string]string{"data/myid": fmt.Sprintln(id)})
		err = errors.Join(err, failed)
		e.Members = append(e.Members, &Peer{Server: &Server{Addr: p.addr, servers: []string{p.addr}}, process: p, ID: id, network: e.network})
		e.servers = append(e.servers, p.addr)
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if err = StartAgain(ctx, e.Members); err == nil {
			err = e.Serving(ctx)
		}
	}
	if err != nil {
		return nil, errors.Join(err, e.Stop())
	}
	e.Addr = e.servers[0]
	e.Origin = fmt.Sprintf("%s, %s, ensemble on %s", i.name, e.version(), strings.Join(e.servers, ","))
	for _, m := range e.Members {
		m.Origin = fmt.Sprintf("member %d of %s", m.ID, e.Origin)
	}
	return e, nil
}

// StartAgain kills members of an ensemble, and restarts them all at the same time.
func StartAgain(ctx context.Context, members []*Peer) (err error) {
	for _, m := range members {
		m.Kill()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	restarted := make(chan error)
	for _, m := range members {
		go func() {
			err := m.Restart(ctx)
			restarted <- err
			if err != nil {
				cancel() // the others wait in vain
			}
		}()
	}
	for range members {
		err = cmp.Or(err, <-restarted) // the first: the others may have failed for it
	}
	return err
}

// CutOff parts the server from the other members, as a network does that is
// partitioned: nothing passes, either way, and no connection is closed by it.
// Clients still reach the server.
func (m *Peer) CutOff() {
	if m.rejoin == nil {
		for ends, link := range m.network.links {
			if slices.Contains(ends[:], m.ID) {
				m.rejoin = append(m.rejoin, link.hold())
			}
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

// Hold stops all that one member sends to another, until release; what the
// other sends back still passes.
func (e *Ensemble) Hold(from, to *Peer) (release func()) {
	return e.network.links[[2]int{from.ID, to.ID}].hold()
}

// What a member says it is, if it serves.
const (
	leads   = "leader"
	follows = "follower"
)

// role asks the member what it is at present, and how many follow it.
func (m *Peer) role() (role string, followers int) {
	text, err := ask(m.Addr, "mntr", 300*time.Millisecond)
	if err != nil {
		return "", 0
	}
	_, role, _ = strings.Cut(text, "zk_server_state\t")
	role, _, _ = strings.Cut(role, "\n")
	return role, int(counters(text)["zk_synced_followers"])
}

// Roles returns the one member that leads, and those that follow at present,
// as soon as one leads, and only one, that a majority follows.
func (e *Ensemble) Roles(ctx context.Context) (leader *Peer, followers []*Peer, err error) {
	err = poll(ctx, func() error {
		var leaders []*Peer
		majority := false
		followers = nil
		for _, m := range e.Members {
			switch role, synced := m.role(); role {
			case leads:
				leaders = append(leaders, m)
				majority = 1+synced > len(e.Members)/2
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
	return poll(ctx, func() (idle error) {
		for _, m := range e.Members {
			if role, _ := m.role(); role != leads && role != follows {
				idle = errors.Join(idle, fmt.Errorf("member %d (%s) does not serve", m.ID, m.Addr))
			}
		}
		return idle
	})
}
