package wiretap

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// frame builds a frame with its length in front.
func frame(parts ...any) []byte {
	var body []byte
	for _, p := range parts {
		if s, ok := p.(string); ok {
			body = append(binary.BigEndian.AppendUint32(body, uint32(len(s))), s...)
		} else {
			body, _ = binary.Append(body, binary.BigEndian, p)
		}
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func TestShortFrameStaysZero(t *testing.T) {
	whole := frame(int32(7), GetData, "/a/b", true)
	for n, want := range map[int]Frame{
		4:  {},
		8:  {Xid: 7},
		12: {Xid: 7, Op: GetData},
		18: {Xid: 7, Op: GetData}, // cut within the path
		20: {Xid: 7, Op: GetData, Path: "/a/b"},
		21: {Xid: 7, Op: GetData, Path: "/a/b", Watch: true},
	} {
		want.Bytes = n
		assert.Equal(t, want, readRequest(whole[:n]), "the first %d bytes", n)
	}
	assert.Empty(t, readRequest(frame(int32(7), GetData, int32(-1), true)).Path, "a path of length -1")
}

// FuzzFrame feeds the three readers what no server and no client would send. They must not panic,
// and must not invent data.
func FuzzFrame(f *testing.F) {
	for _, op := range []Op{
		Create,
		Delete,
		Exists,
		GetData,
		SetData,
		Sync,
		Ping,
		GetChildren,
		Multi,
		SetAuth,
		SetWatches,
		Close,
	} {
		f.Add(frame(int32(1), op, "/path", true)[4:], int32(op))
	}
	f.Add(frame(int32(1), int64(9), OK, "/path0000000001")[4:], int32(Create))
	f.Add(frame(int32(1), int64(9), OK, int32(2), "a", "b")[4:], int32(GetChildren))
	f.Add(frame(int32(1), int64(9), NoNode)[4:], int32(GetChildren))
	f.Add(frame(int32(-1), int64(-1), OK, NodeDeleted, int32(3), "/path")[4:], int32(0))
	f.Add(frame(int32(1), SetWatches, int64(9), int32(1), "/a", int32(1), "/b", int32(2), "/c", "/d")[4:], int32(0))
	f.Add(frame(int32(1), SetWatches, int64(9), int32(1<<31-1))[4:], int32(0))
	f.Add([]byte{}, int32(0))

	f.Fuzz(func(t *testing.T, body []byte, op int32) {
		// What is behind the frame in memory must never be read.
		room := append(make([]byte, 4, 4+len(body)+64), body...)
		copy(room[len(room):cap(room)], strings.Repeat("outside!", 8))
		before := bytes.Clone(room)

		request := readRequest(room)
		reply := readReply(room, func(int32) Frame { return Frame{Op: Op(op), Path: "/asked"} })
		paths := []string{request.Path, strings.TrimPrefix(reply.Path, "/asked")}
		for _, w := range readWatches(room) {
			paths = append(paths, w.path)
		}
		for _, path := range paths {
			assert.True(t, bytes.Contains(body, []byte(path)), "the path %q is in the frame %q", path, body)
		}
		assert.Equal(t, Request, request.Kind)
		assert.NotEqual(t, Request, reply.Kind)
		assert.Equal(t, len(room), request.Bytes)
		assert.Equal(t, len(room), reply.Bytes)
		assert.GreaterOrEqual(t, reply.Names, 0)
		assert.Equal(t, before, room, "a reader changes nothing")
	})
}

func TestNamesForPeople(t *testing.T) {
	for want, f := range map[string]Frame{
		"request getData /a and watch":         {Kind: Request, Op: GetData, Path: "/a", Watch: true},
		"reply create /a error -110 zxid 0x10": {Kind: Reply, Op: Create, Path: "/a", Err: NodeExists, Zxid: 16},
		"notification 2 /a":                    {Kind: Notification, Event: NodeDeleted, Path: "/a"},
		"request op 77  (lost)":                {Kind: Request, Op: 77, Lost: true},
	} {
		assert.Equal(t, want, f.String())
	}
}
