package zktest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// startLocalEnsemble runs the three servers as child processes.
//
// Each reaches the others through proxies in this process, which can hold
// what goes from one to another.
func startLocalEnsemble(ctx context.Context, lines []string) (*Ensemble, error) {
	found, err := findLocal()
	if err != nil {
		return nil, err
	}
	return onFreePorts(9, func(ports []int) (*Ensemble, error) {
		return found.launchEnsemble(ctx, ports, lines)
	})
}

func (found installation) launchEnsemble(ctx context.Context, ports []int, lines []string) (*Ensemble, error) {
	home, remove, err := newHome()
	if err != nil {
		return nil, err
	}
	proxies := newProxies()
	ids := []int{1, 2, 3}
	links := make(map[[2]int]*link)
	for _, from := range ids {
		for _, to := range ids {
			if from != to {
				links[[2]int{from, to}] = newLink(proxies.ctx)
			}
		}
	}
	client, quorum, election := ports[0:3], ports[3:6], ports[6:9]
	proxy := func(from, to, port int) int {
		at, failed := proxies.open(fmt.Sprintf("127.0.0.1:%d", port), links[[2]int{from, to}], links[[2]int{to, from}])
		err = errors.Join(err, failed)
		return at
	}

	var members []*Peer
	for i, id := range ids {
		var servers []string
		for j, other := range ids {
			// A server tells the others where to call it back. They ignore
			// 0.0.0.0 and do so where their own configuration says.
			host, q, e := "0.0.0.0", quorum[j], election[j]
			if id != other {
				host, q, e = "127.0.0.1", proxy(id, other, q), proxy(id, other, e)
			}
			servers = append(servers, fmt.Sprintf("server.%d=%s:%d:%d", other, host, q, e))
		}
		m := &localMember{
			child: child{installation: found, dir: filepath.Join(home, fmt.Sprint(id)), addr: fmt.Sprintf("127.0.0.1:%d", client[i])},
		}
		for pair, link := range links {
			if slices.Contains(pair[:], id) {
				m.links = append(m.links, link)
			}
		}
		err = errors.Join(err, m.prepare(config(m.data(), "127.0.0.1", client[i], ensembleConfig(servers, lines)),
			map[string]string{"data/myid": fmt.Sprintln(id)}))
		m.server = &Server{Addr: m.addr, servers: []string{m.addr}}
		members = append(members, &Peer{Server: m.server, ID: id, host: m})
	}
	stop := func() error {
		for _, m := range members {
			m.host.kill()
		}
		proxies.close()
		return remove()
	}
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	e, err := startAll(ctx, found.name, members, stop)
	if err != nil {
		return nil, err
	}
	e.links = links
	return e, nil
}

// localMember is a member that runs as a child process.
type localMember struct {
	child
	server    *Server
	links     []*link // to and from the others
	rejoinAll []func()
}

func (m *localMember) start(ctx context.Context) error {
	if m.java != nil && !m.ended() {
		return errors.New("it runs already")
	}
	err := m.child.start(ctx)
	if m.java != nil {
		m.server.pid = m.java.Process.Pid
	}
	return err
}

func (m *localMember) quit() error {
	if err := m.signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-m.gone
	return nil
}

func (m *localMember) pause() error {
	if m.paused {
		return nil
	}
	if err := m.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	m.paused = true
	// All of java's threads have to stop; the kernel tells when they have.
	for {
		_, err := syscall.Wait4(m.java.Process.Pid, nil, syscall.WUNTRACED, nil)
		if err != syscall.EINTR {
			return err
		}
	}
}

func (m *localMember) resume() error {
	m.paused = false
	return m.signal(syscall.SIGCONT)
}

func (m *localMember) signal(signal syscall.Signal) error {
	return m.java.Process.Signal(signal)
}

func (m *localMember) cutOff() error {
	if m.rejoinAll == nil {
		for _, link := range m.links {
			m.rejoinAll = append(m.rejoinAll, link.hold())
		}
	}
	return nil
}

func (m *localMember) rejoin() error {
	for _, release := range m.rejoinAll {
		release()
	}
	m.rejoinAll = nil
	return nil
}
