//go:build race

package zktest

import (
	"encoding/binary"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"zklock/internal/server/wiretap"
)

func init() {
	Child("racer", racer)
	Child("reconnector", reconnector)
}

// When this test says that the client's race is no more, race.go and race.txt
// can go.
func TestOneRaceIsKnown(t *testing.T) {
	t.Parallel()
	z := New(t)
	for _, run := range []struct {
		role, options, want string
	}{
		{"racer", os.Getenv("GORACE"), "zktest.racer"},
		{"reconnector", os.Getenv("GORACE"), ""},
		{"reconnector", "suppressions=/dev/null", "zk.(*Conn).sendSetWatches"},
	} {
		cmd := z.child(run.role)
		cmd.Env = append(cmd.Env, "GORACE="+run.options)
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		output, err := cmd.CombinedOutput()
		stdin.Close()
		isReported := err != nil
		isWanted := run.want != ""
		if isReported != isWanted || !strings.Contains(string(output), run.want) {
			t.Errorf("%s with GORACE=%s: %v, want a report of %q in:\n%s", run.role, run.options, err, run.want, output)
		}
	}
}

// racer is a child process with a race of our own.
func racer(_, _ []string) {
	n, ended := 0, make(chan struct{})
	go func() {
		n++
		close(ended)
	}()
	n++
	<-ended
}

// reconnector is a child process whose client has a watch, and loses its
// connection ten times. On each connection an answer comes right after the
// handshake's: as to a request that was in the queue when the last one broke.
func reconnector(servers, _ []string) {
	var answer []byte
	for _, field := range []any{int32(16), int32(1 << 30), int64(1), int32(0)} { // length, xid, zxid, error
		answer, _ = binary.Append(answer, binary.BigEndian, field)
	}
	conns := make(chan net.Conn, 100)
	over := Over(func(conn net.Conn) net.Conn {
		conns <- conn
		return &Altered{Conn: conn, Alter: func(n int, frame []byte) ([]byte, error) {
			if n == 0 {
				frame = append(frame, answer...)
			}
			return frame, nil
		}}
	})
	conn, events, err := zk.Connect(
		servers,
		SessionTimeout,
		zk.WithLogInfo(false),
		zk.WithDialer(over(wiretap.New().Dial)),
	)
	if err != nil {
		panic(err)
	}
	for connections := 0; connections < 10; {
		if event := <-events; event.State != zk.StateHasSession {
			continue
		}
		connections++
		if _, _, _, err := conn.ExistsW("/nowhere"); err != nil {
			panic(err)
		}
		(<-conns).Close()
	}
}
