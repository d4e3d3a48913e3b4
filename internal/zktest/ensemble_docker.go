package zktest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	containers "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

// startDockerEnsemble runs the three servers as containers of the image.
//
// Each is on two networks: the daemon's usual one, where clients reach it, and
// one of the three servers alone.
func startDockerEnsemble(ctx context.Context, lines []string) (*Ensemble, error) {
	host, err := reachDocker(ctx)
	if err != nil {
		return nil, err
	}
	return onFreePorts(3, func(ports []int) (*Ensemble, error) {
		return runEnsemble(ctx, host, ports, lines)
	})
}

// runEnsemble runs the containers and makes clients find them at these ports.
func runEnsemble(ctx context.Context, host string, ports []int, lines []string) (*Ensemble, error) {
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return nil, err
	}
	docker := provider.Client()
	name := fmt.Sprintf("zklock-%d-%d", os.Getpid(), time.Now().UnixNano())

	var members []*Peer
	remove := func() (err error) {
		for _, m := range members {
			err = errors.Join(err, testcontainers.TerminateContainer(m.host.(*dockerMember).container, testcontainers.StopTimeout(0)))
		}
		_, failed := docker.NetworkRemove(context.Background(), name, client.NetworkRemoveOptions{})
		return errors.Join(err, failed)
	}
	if tool := containerTool(); tool != nil {
		remove, err = watchdog(`"$1" "$2" "$3" rm -f -v "$4-1" "$4-2" "$4-3"; "$1" "$2" "$3" network rm "$4"`, append(tool, host, name)...)
		if err != nil {
			return nil, errors.Join(err, docker.Close())
		}
	}
	stop := sync.OnceValue(func() error { return errors.Join(remove(), docker.Close()) })

	subnet, err := createNetwork(ctx, docker, name)
	for id := 1; id <= 3 && err == nil; id++ {
		var m *dockerMember
		m, err = createMember(ctx, docker, host, name, subnet, id, ports[id-1], lines)
		if m != nil {
			members = append(members, &Peer{Server: m.server, ID: id, host: m})
		}
	}
	var e *Ensemble
	if err == nil {
		e, err = startAll(ctx, "Docker image "+image(), members, stop)
	}
	if err != nil {
		return nil, fmt.Errorf("containers of %s: %w", image(), errors.Join(err, stop()))
	}
	return e, nil
}

// createNetwork makes a network that leads nowhere else: not even this machine
// has an address on it, over which a member that is cut off could be reached.
func createNetwork(ctx context.Context, docker client.APIClient, name string) (subnet netip.Prefix, err error) {
	for range 5 {
		// These addresses are reserved for tests of networks. A member keeps
		// its own when it starts again, which needs a subnet of our choice.
		subnet = netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 18, byte(rand.IntN(256)), 0}), 24)
		_, err = docker.NetworkCreate(ctx, name, client.NetworkCreateOptions{
			Driver:   "bridge",
			Internal: true,
			IPAM:     &network.IPAM{Config: []network.IPAMConfig{{Subnet: subnet}}},
			Options:  map[string]string{"com.docker.network.bridge.inhibit_ipv4": "true"},
			Labels:   testcontainers.GenericLabels(),
		})
		if err == nil || !strings.Contains(err.Error(), "overlap") {
			break
		}
	}
	return subnet, err
}

// memberIP returns the address of a member; the first of the subnet is taken.
func memberIP(subnet netip.Prefix, id int) netip.Addr {
	bytes := subnet.Addr().As4()
	bytes[3] = byte(10 + id)
	return netip.AddrFrom4(bytes)
}

// dockerMember is a member that runs as a container.
type dockerMember struct {
	docker    client.APIClient
	host      string // of the daemon
	container *testcontainers.DockerContainer
	server    *Server
	network   string
	ip        netip.Addr // on it
	apart     bool       // cut off
}

// createMember makes the container and does not start it yet. A container is
// returned with an error, too, if there is one to remove.
func createMember(ctx context.Context, docker client.APIClient, host, name string, subnet netip.Prefix, id, port int, lines []string) (*dockerMember, error) {
	var servers []string
	for other := 1; other <= 3; other++ {
		servers = append(servers, fmt.Sprintf("server.%d=%s:2888:3888", other, memberIP(subnet, other)))
	}
	m := &dockerMember{docker: docker, host: host, network: name, ip: memberIP(subnet, id)}
	m.server = &Server{container: fmt.Sprintf("%s-%d", name, id)}
	files := map[string]string{
		"/conf/zoo.cfg": config("/data", "0.0.0.0", 2181, ensembleConfig(servers, lines)),
		"/data/myid":    fmt.Sprintln(id),
	}
	var err error
	m.container, err = testcontainers.Run(ctx, image(), append(container(m.server.container, files),
		testcontainers.WithNoStart(),
		// The daemon would choose another port at each start.
		testcontainers.WithHostConfigModifier(func(host *containers.HostConfig) {
			host.PortBindings = network.PortMap{
				network.MustParsePort("2181/tcp"): {{HostPort: strconv.Itoa(port)}},
			}
		}))...)
	if err == nil {
		err = m.connect(ctx)
	}
	return m, err
}

func (m *dockerMember) connect(ctx context.Context) error {
	_, err := m.docker.NetworkConnect(ctx, m.network, client.NetworkConnectOptions{
		Container:      m.container.ID,
		EndpointConfig: &network.EndpointSettings{IPAMConfig: &network.EndpointIPAMConfig{IPv4Address: m.ip}},
	})
	return err
}

func (m *dockerMember) start(ctx context.Context) error {
	if m.runs(ctx) {
		return errors.New("it runs already")
	}
	if err := m.container.Start(ctx); err != nil {
		return err
	}
	addrs, err := mapped(ctx, m.container, m.host)
	if err == nil {
		m.server.Addr, err = await(ctx, addrs, "srvr", versionIs, 150*time.Millisecond, func() error { return ended(ctx, m.container) })
	}
	m.server.servers = []string{m.server.Addr}
	return err
}

func (m *dockerMember) runs(ctx context.Context) bool {
	state, err := m.container.State(ctx)
	return err == nil && state.Running
}

// order gives the daemon an order, and some time for it.
func order(give func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return give(ctx)
}

func (m *dockerMember) kill() error {
	return order(func(ctx context.Context) error {
		if !m.runs(ctx) {
			return nil
		}
		if _, err := m.docker.ContainerKill(ctx, m.container.ID, client.ContainerKillOptions{}); err != nil {
			return err
		}
		wait := m.docker.ContainerWait(ctx, m.container.ID, client.ContainerWaitOptions{})
		select {
		case <-wait.Result:
			return nil
		case err := <-wait.Error:
			return err
		}
	})
}

func (m *dockerMember) quit() error {
	return order(func(ctx context.Context) error {
		_, err := m.docker.ContainerStop(ctx, m.container.ID, client.ContainerStopOptions{})
		return err
	})
}

func (m *dockerMember) pause() error {
	return order(func(ctx context.Context) error {
		_, err := m.docker.ContainerPause(ctx, m.container.ID, client.ContainerPauseOptions{})
		return err
	})
}

func (m *dockerMember) resume() error {
	return order(func(ctx context.Context) error {
		_, err := m.docker.ContainerUnpause(ctx, m.container.ID, client.ContainerUnpauseOptions{})
		return err
	})
}

func (m *dockerMember) cutOff() error {
	if m.apart {
		return nil
	}
	m.apart = true
	return order(func(ctx context.Context) error {
		_, err := m.docker.NetworkDisconnect(ctx, m.network, client.NetworkDisconnectOptions{Container: m.container.ID})
		return err
	})
}

func (m *dockerMember) rejoin() error {
	if !m.apart {
		return nil
	}
	m.apart = false
	return order(m.connect)
}
