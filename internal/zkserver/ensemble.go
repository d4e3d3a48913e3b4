package zkserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Ensemble is three real ZooKeeper servers, or another odd number, that serve together. A majority
// of them can serve without the others.
type Ensemble struct {
	*Server         // all of them: Stop ends them; Word and Mntr ask the first, a Peer has its own
	Members []*Peer // by their ID: 1, 2, 3 …

	network *network
}

// Peer is one member of an Ensemble: a server on a machine of its own. Two goroutines must not call
// methods of the same Peer at the same time. They may call methods of two Peers.
type Peer struct {
	*Server // only at its own address; its Stop does nothing
	ID      int
	ZooCfg  string // the zoo.cfg with which it first started

	Observes bool // it has no vote

	machine machine
	paused  bool

	network *network
	rejoin  []func() // not nil: it is partitioned
}

// Config is what the configuration of a private server has in addition to the usual lines.
type Config struct {
	Lines []string          // for the zoo.cfg of each server; they override the usual lines
	Data  map[string]string // texts by name, for the folder where the server keeps its data

	Observers int  // how many of the servers, the last ones, have no vote
	Behind    bool // the observers reach the leader through server 1, which must not lead, at its observerMasterPort
}

// StartEnsemble starts n servers, and returns when each one serves, as leader or as follower. lines
// go into the zoo.cfg of each server, and override the usual lines.
//
// The servers are processes of a local installation, or else containers. ZK_BACKEND can force one
// of the two. StartEnsemble never uses a server that already runs. The servers end with this
// process.
func StartEnsemble(ctx context.Context, n int, lines ...string) (*Ensemble, error) {
	return StartEnsembleWith(ctx, n, Config{Lines: lines})
}

// StartEnsembleWith is StartEnsemble with more additions to the configuration. n includes the
// observers.
func StartEnsembleWith(ctx context.Context, n int, config Config) (*Ensemble, error) {
	return start(ctx, n, config, local, docker)
}

// launch runs a server for every three ports: one port is for clients, and two are for the other
// servers. What one server sends to another passes through a network in this process, which can
// hold it.
func (p place) launch(ctx context.Context, ports []int, config Config) (*Ensemble, error) {
	n := len(ports) / 3
	e := &Ensemble{Server: &Server{}, network: newNetwork(n, p)}
	e.stop = sync.OnceValue(func() (err error) {
		for _, m := range e.Members {
			err = errors.Join(err, m.machine.remove())
		}
		e.network.close()
		return err
	})
	err := e.prepare(p, ports, config)
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, 3*time.Minute) // on a busy machine
		defer cancel()
		if err = StartAgain(ctx, e.Members); err == nil {
			err = e.Serving(ctx)
		}
	}
	if err != nil {
		return nil, errors.Join(err, e.Stop())
	}
	e.Addr = e.servers[0]
	e.Origin = fmt.Sprintf("%s, %s, on %s", p.name, e.version(), strings.Join(e.servers, ","))
	return e, nil
}

// prepare makes the members.
func (e *Ensemble) prepare(p place, ports []int, config Config) error {
	n := len(ports) / 3
	clients, quorum, election := ports[:n], ports[n:2*n], ports[2*n:]
	for id := 1; id <= n; id++ {
		port := clients[id-1]
		machine, err := p.machine([]int{port, quorum[id-1], election[id-1]})
		if err != nil {
			return err
		}
		addr := net.JoinHostPort(p.host, strconv.Itoa(port))
		m := &Peer{
			Server: &Server{Addr: addr, servers: []string{addr}}, ID: id, Observes: id > n-config.Observers,
			machine: machine, network: e.network,
		}
		e.Members, e.servers = append(e.Members, m), append(e.servers, addr)
		lines := config.Lines
		if n > 1 {
			others, err := e.membership(m, config, quorum, election)
			if err != nil {
				return err
			}
			lines = append(others, lines...)
		}
		data := map[string]string{"myid": fmt.Sprintln(id)}
		maps.Copy(data, config.Data)
		m.ZooCfg = zooCfg(machine.data(), p.address, port, lines)
		if err := machine.prepare(m.ZooCfg, data); err != nil {
			return err
		}
	}
	return nil
}

// membership returns the lines of a server's zoo.cfg that name all servers, and say how this server
// reaches the others.
func (e *Ensemble) membership(m *Peer, config Config, quorum, election []int) (lines []string, err error) {
	// Both limits are in ticks. A follower may be silent for a second. In a server's first election
	// two servers can become leaders, if one server starts later than the others. The leader that
	// no server follows gives up after initLimit, and until then no server serves. So a test that
	// needs patient servers makes syncLimit longer, and not initLimit.
	lines = []string{"initLimit=20", "syncLimit=10"}
	if m.Observes {
		lines = append(lines, "peerType=observer")
	}
	listensOrCalls := m.ID == 1 || m.Observes
	namesMasterPort := config.Behind && listensOrCalls // server 1 listens at it, and the observers call it
	for i := range quorum {
		// A server tells the others at which address they can call it back. They ignore 0.0.0.0,
		// and use the address in their own configuration.
		host, ports := "0.0.0.0", []int{quorum[i], election[i]}
		if i+1 != m.ID {
			host = e.network.gateway
			for j, port := range ports {
				at, failed := e.network.lead(m.ID, i+1, port)
				ports[j], err = at, errors.Join(err, failed)
			}
		}
		if namesMasterPort && i == 0 {
			lines = append(lines, fmt.Sprint("observerMasterPort=", ports[0])) // at which a leader would listen
		}
		role := ""
		if i >= len(quorum)-config.Observers {
			role = ":observer"
		}
		lines = append(lines, fmt.Sprintf("server.%d=%s:%d:%d%s", i+1, host, ports[0], ports[1], role))
	}
	return lines, err
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
				cancel() // no other member will be ready
			}
		}()
	}
	for range members {
		err = cmp.Or(err, <-restarted) // the first one: it may have caused the others
	}
	return err
}

// CutOff partitions the server from the other members: nothing passes in either direction, and
// CutOff closes no connection. Clients still reach the server.
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

// Overhear calls hear, from now on, with each piece of data that one member sends to another, when
// it passes. A nil hear ends this.
func (e *Ensemble) Overhear(from, to *Peer, hear func(b []byte)) {
	link := e.network.links[[2]int{from.ID, to.ID}]
	link.pass(func() { link.hear = hear })
}

// Hold stops everything that one member sends to another, until release is called. What the other
// member sends back still passes.
func (e *Ensemble) Hold(from, to *Peer) (release func()) {
	return e.network.links[[2]int{from.ID, to.ID}].hold()
}

// The roles that a member with a vote reports, if it serves.
const (
	leads   = "leader"
	follows = "follower"
)

// role asks a member for its present role, and how many followers it has. If it does not serve, the
// role is "".
func (m *Peer) role() (role string, followers int) {
	text, err := ask(m.Addr, "mntr", 300*time.Millisecond)
	if err != nil {
		return "", 0
	}
	_, role, _ = strings.Cut(text, "zk_server_state\t")
	role, _, _ = strings.Cut(role, "\n")
	return role, int(counters(text)["zk_synced_followers"])
}

// Roles returns the leader and the present followers, as soon as exactly one member leads and a
// majority follows it.
func (e *Ensemble) Roles(ctx context.Context) (leader *Peer, followers []*Peer, err error) {
	votes := 0
	for _, m := range e.Members {
		if !m.Observes {
			votes++
		}
	}
	err = poll(ctx, func() error {
		var leaders []*Peer
		majority := false
		followers = nil
		for _, m := range e.Members {
			switch role, synced := m.role(); role {
			case leads:
				leaders = append(leaders, m)
				majority = 1+synced > votes/2
			case follows:
				followers = append(followers, m)
			}
		}
		oneLeads := len(leaders) == 1 && majority
		if !oneLeads || len(followers) == 0 {
			return fmt.Errorf("no leader of a majority: %d lead, %d follow", len(leaders), len(followers))
		}
		leader = leaders[0]
		return nil
	})
	return leader, followers, err
}

// Serving returns when every member serves, in whatever role. Its error names the members that do
// not serve.
func (e *Ensemble) Serving(ctx context.Context) error {
	return poll(ctx, func() (idle error) {
		for _, m := range e.Members {
			if role, _ := m.role(); role == "" {
				idle = errors.Join(idle, fmt.Errorf("member %d (%s) does not serve", m.ID, m.Addr))
			}
		}
		return idle
	})
}
