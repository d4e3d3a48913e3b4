package docs

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zklock/internal/check/zktest"
	"zklock/internal/server/wiretap"
	"zklock/internal/upkeep/chapter"
)

// A byHand is a session whose requests are written by hand: the Go client has no
// addWatch. ZooKeeper's numbers are big-endian, and each message stands behind its length.
type byHand struct {
	t    *testing.T
	conn net.Conn
}

// ZooKeeper's own numbers.
const (
	addWatch           int32 = 106
	xidOfNotifications int32 = -1
)

// newByHand begins a session.
func newByHand(t *testing.T, z *zktest.Zoo) byHand {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(z.Ctx, "tcp", z.Servers()[0])
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	deadline, _ := z.Ctx.Deadline()
	require.NoError(t, conn.SetDeadline(deadline))
	c := byHand{t, conn}
	const version, lastZxid, session, password = int32(0), int64(0), int64(0), 16
	timeout := int32(zktest.SessionTimeout.Milliseconds())
	c.send(version, lastZxid, timeout, session, int32(password), make([]byte, password))
	c.receive()
	return c
}

func (c byHand) send(parts ...any) {
	c.t.Helper()
	var message []byte
	for _, part := range parts {
		if text, ok := part.(string); ok {
			message = binary.BigEndian.AppendUint32(message, uint32(len(text)))
			part = []byte(text)
		}
		var err error
		message, err = binary.Append(message, binary.BigEndian, part)
		require.NoError(c.t, err)
	}
	_, err := c.conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...))
	require.NoError(c.t, err)
}

func (c byHand) receive() (message []byte) {
	c.t.Helper()
	length := make([]byte, 4)
	_, err := io.ReadFull(c.conn, length)
	require.NoError(c.t, err)
	message = make([]byte, binary.BigEndian.Uint32(length))
	_, err = io.ReadFull(c.conn, message)
	require.NoError(c.t, err)
	return message
}

// answer returns the error in the answer to the request xid, and the notifications that
// come before it.
func (c byHand) answer(xid int32) (code zk.ErrCode, notifications []string) {
	c.t.Helper()
	for {
		message := c.receive() // xid, zxid, error; and of a notification: event, state, path
		switch int32(binary.BigEndian.Uint32(message)) {
		case xid:
			return zk.ErrCode(int32(binary.BigEndian.Uint32(message[12:]))), notifications
		case xidOfNotifications:
			event := zk.EventType(int32(binary.BigEndian.Uint32(message[16:])))
			notifications = append(notifications, fmt.Sprintf("%v %s", event, message[28:]))
		}
	}
}

// What a watch tells that stays: the same changes, beside a znode and below it.
func TestAWatchThatStays(t *testing.T) {
	t.Parallel()
	for mode, kind := range []string{"persistent", "persistent and recursive"} {
		z, other := start(t)
		dir := create(t, other, z.Root+"/dir", 0)
		c := newByHand(t, z)
		c.send(int32(1), addWatch, dir, int32(mode))
		code, _ := c.answer(1)
		require.Zero(t, code, "the answer to addWatch")

		require.NoError(t, sets(other, dir))
		require.NoError(t, sets(other, dir))
		child := create(t, other, dir+"/child", 0)
		require.NoError(t, sets(other, child))
		require.NoError(t, deletes(other, child))
		const noWatch = false
		c.send(int32(2), wiretap.Exists, "/", noWatch)
		_, told := c.answer(2)
		paths := strings.ReplaceAll(strings.Join(told, ", "), z.Root, "")
		chapter.SaysIn(t, "zookeeper.md", "addWatch, %s: %s", kind, paths)
		c.send(int32(3), wiretap.Close)
	}
}
