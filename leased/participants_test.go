package leased

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zklock/internal/wiretap"
	"zklock/internal/zktest"
)

// labelled opens a session whose znodes have the client's name as their data.
func labelled(z *zktest.Zoo, name string) (*Session, *zktest.Client) {
	var s *Session
	c := z.ConnectWith(name, func(dial zk.Dialer) (_ *zk.Conn, end func(), err error) {
		s, err = Open(z.Ctx, z.Servers(), zktest.SessionTimeout, WithDialer(dial), WithLabel(name))
		if err != nil {
			return nil, nil, err
		}
		return s.Conn(), s.Close, nil
	})
	return s, c
}

// Clients queue up one after the other, as readers (R) or writers (W). Queue lists them in this order,
// whatever the guids in their names. For each client, it says which one it is, since when it is queued, and
// whether it holds the lock.
func TestQueueTellsWhoHoldsAndWhoWaits(t *testing.T) {
	t.Parallel()
	for letters, holders := range map[string]int{"WRWRWRWRWR": 1, "RRRWRRW": 3, "WWWW": 1, "RRRR": 4} {
		t.Run(letters, func(t *testing.T) {
			t.Parallel()
			z := zktest.New(t)
			path := z.Root + "/orders"
			observer, c := labelled(z, "the one who asks")
			asks := NewRWMutex(observer, path)
			none, err := asks.Queue(z.Ctx)
			require.NoError(t, err)
			require.Empty(t, none, "nobody has locked yet")

			for i, letter := range letters {
				s, _ := labelled(z, fmt.Sprintf("%c%d", letter, i))
				lock := NewRWMutex(s, path).Lock
				if letter == 'R' {
					lock = NewRWMutex(s, path).RLock
				}
				go lock(z.Ctx) // returns when the session ends
				z.Await("the next one to queue up", func() bool { return len(z.Names(path)) == i+1 })
			}
			mark := c.Tap.Mark()
			queue, err := asks.Queue(z.Ctx)
			require.NoError(t, err)
			require.Len(t, queue, len(letters))
			for i, letter := range letters {
				p := queue[i]
				require.Equal(t, fmt.Sprintf("%c%d", letter, i), p.Label)
				require.Equal(t, letter == 'R', p.Reads, p.Label)
				require.Equal(t, i < holders, p.Holds, p.Label)
				_, stat, err := z.Observer().Exists(p.Znode)
				require.NoError(t, err)
				require.Equal(t, stat.Ctime, p.Since.UnixMilli(), "since when %s queues", p.Label)
			}
			requests := wiretap.Count(c.Tap.Since(mark)).Requests
			delete(requests, wiretap.Ping)
			want := map[wiretap.Op]int{wiretap.GetChildren: 1, wiretap.GetData: len(letters)}
			require.Equal(t, want, requests, "requests of Queue: a list, and a read for each")
		})
	}
}

// A client leaves between the list and the read of its znode. Queue leaves it out.
func TestQueueLeavesOutWhoLeavesMeanwhile(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	path := z.Root + "/orders"
	a, _ := labelled(z, "A")
	b, c := labelled(z, "B")
	hold := mustLock(t, NewCohort(a, path), z.Ctx)
	list := c.Tap.HoldReply(wiretap.GetChildren, 1)
	type answer struct {
		queue []Participant
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		queue, err := NewCohort(b, path).Queue(z.Ctx)
		answers <- answer{queue, err}
	}()
	zktest.AwaitChan(z, "the list", list.Sprung())
	require.NoError(t, hold.Unlock())
	list.Let()
	got := zktest.AwaitChan(z, "Queue to return", answers)
	require.NoError(t, got.err)
	require.Empty(t, got.queue)
}

// Without an answer Queue returns when its context ends, with an error that says that no server has answered.
func TestQueueWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	s, c := labelled(z, "A")
	c.Tap.Silence()
	ctx, cancel := context.WithTimeout(z.Ctx, 50*time.Millisecond)
	defer cancel()
	_, err := NewMutex(s, z.Root+"/orders").Queue(ctx)
	require.ErrorIs(t, err, ErrNoAnswer)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "leased: list the queue of "+z.Root+"/orders")
}
