package wiretap

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"strings"
	"testing"
)

// frame puts together what follows a frame's length.
func frame(parts ...any) []byte {
	var body []byte
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			body = append(binary.BigEndian.AppendUint32(body, uint32(len(p))), p...)
		case []string:
			body = binary.BigEndian.AppendUint32(body, uint32(len(p)))
			for _, s := range p {
				body = append(binary.BigEndian.AppendUint32(body, uint32(len(s))), s...)
			}
		case bool:
			body = append(body, map[bool]byte{true: 1}[p])
		default:
			body, _ = binary.Append(body, binary.BigEndian, p)
		}
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func TestShortFrameStaysZero(t *testing.T) {
	whole := frame(int32(7), GetData, "/a/b", true)
	for n, f := range map[int]Frame{
		4:  {},
		8:  {Xid: 7},
		12: {Xid: 7, Op: GetData},
		18: {Xid: 7, Op: GetData}, // cut within the path
		20: {Xid: 7, Op: GetData, Path: "/a/b"},
		21: {Xid: 7, Op: GetData, Path: "/a/b", Watch: true},
	} {
		f.Bytes = n
		if got := readRequest(whole[:n]); got != f {
			t.Errorf("%d bytes: got %+v, want %+v", n, got, f)
		}
	}
	null := frame(int32(7), GetData, int32(-1), true)
	if got := readRequest(null); got.Path != "" {
		t.Errorf("a path of length -1 was read as %q", got.Path)
	}
}

// FuzzFrame feeds the three readers what no server and no client would send.
// They must not panic, nor make up what is not there.
func FuzzFrame(f *testing.F) {
	for _, op := range []Op{Create, Delete, Exists, GetData, SetData, Sync, Ping, GetChildren, Multi, SetAuth, SetWatches, Close} {
		f.Add(frame(int32(1), op, "/path", true)[4:], int32(op))
	}
	f.Add(frame(int32(1), int64(9), OK, "/path0000000001")[4:], int32(Create))
	f.Add(frame(int32(1), int64(9), OK, []string{"a", "b"})[4:], int32(GetChildren))
	f.Add(frame(int32(1), int64(9), NoNode)[4:], int32(GetChildren))
	f.Add(frame(int32(-1), int64(-1), OK, NodeDeleted, int32(3), "/path")[4:], int32(0))
	f.Add(frame(int32(1), SetWatches, int64(9), []string{"/a"}, []string{"/b"}, []string{"/c", "/d"})[4:], int32(0))
	f.Add(frame(int32(1), SetWatches, int64(9), int32(1<<31-1))[4:], int32(0))
	f.Add([]byte{}, int32(0))

	f.Fuzz(func(t *testing.T, body []byte, op int32) {
		// What stands behind the frame in memory must never be read.
		room := append(make([]byte, 4, 4+len(body)+64), body...)
		copy(room[len(room):cap(room)], strings.Repeat("outside!", 8))
		before := bytes.Clone(room)

		request := readRequest(room)
		reply := readReply(room, func(int32) Frame { return Frame{Op: Op(op), Path: "/asked"} })
		data, children := rearmed(room)
		for _, path := range append(append(data, children...), request.Path, strings.TrimPrefix(reply.Path, "/asked")) {
			if !bytes.Contains(body, []byte(path)) {
				t.Errorf("the path %q is not in the frame %q", path, body)
			}
		}
		if request.Kind != Request || reply.Kind == Request || request.Bytes != len(room) || reply.Bytes != len(room) {
			t.Errorf("a request of %d bytes was read as %+v, and as a reply as %+v", len(room), request, reply)
		}
		if reply.Names < 0 {
			t.Errorf("a list of %d names", reply.Names)
		}
		if !reflect.DeepEqual(before, room) {
			t.Error("the frame was changed")
		}
	})
}

func TestNamesForPeople(t *testing.T) {
	for f, want := range map[Frame]string{
		{Kind: Request, Op: GetData, Path: "/a", Watch: true}:      "request getData /a and watch",
		{Kind: Reply, Op: Create, Path: "/a", Err: -110, Zxid: 16}: "reply create /a error -110 zxid 0x10",
		{Kind: Notification, Event: NodeDeleted, Path: "/a"}:       "notification 2 /a",
		{Kind: Request, Op: 77, Lost: true}:                        "request op 77  (lost)",
	} {
		if got := f.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
