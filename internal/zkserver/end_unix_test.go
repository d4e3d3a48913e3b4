//go:build unix

package zkserver_test

import (
	"context"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/internal/zkserver"
	"zklock/internal/zktest"
)

func TestMain(m *testing.M) {
	zktest.Child("launcher", launcher)
	zktest.Main(m)
}

// A process that has started servers may end in any way, even in one that lets
// it do nothing more: the servers end with it, in whatever state they are.
func TestServersEndWithTheirProcess(t *testing.T) {
	for name, test := range map[string]struct {
		servers string
		end     syscall.Signal
	}{
		"killed":              {"one", syscall.SIGKILL},
		"Ctrl-C":              {"one", syscall.SIGINT},
		"killed, with others": {"an ensemble", syscall.SIGKILL},
	} {
		t.Run(name, func(t *testing.T) {
			z := zktest.New(t)
			ownServer(t)
			pid, origin, _ := strings.Cut(z.Process("launcher", test.servers).Line(), " ")
			job, err := strconv.Atoi(pid)
			require.NoError(t, err, "%s %s", pid, origin)
			assert.NotEmpty(t, remains(origin), "there is a server, and this test cannot see it")
			require.NoError(t, syscall.Kill(-job, test.end))
			nothingRemains := func(c *assert.CollectT) { assert.Empty(c, remains(origin)) }
			assert.EventuallyWithT(t, nothingRemains, 30*time.Second, 10*time.Millisecond)
		})
	}
}

// launcher is the child process: it starts servers, and waits for its end.
func launcher(_, args []string) {
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	must(syscall.Setpgid(0, 0)) // a job, as a terminal makes it
	ctx, origin := context.Background(), ""
	if args[0] == "one" {
		s, err := zkserver.Start(ctx)
		must(err)
		origin = s.Origin
	} else {
		e, err := zkserver.StartEnsemble(ctx, 3)
		must(err)
		must(zkserver.StartAgain(ctx, e.Members[:1]))
		must(e.Members[1].Pause())
		origin = e.Origin
	}
	zktest.Say("%d %s", os.Getpid(), origin)
	select {}
}
