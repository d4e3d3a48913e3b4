package wiretap

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAFrameInWords(t *testing.T) {
	reply := func(op Op, err int32) Frame { return Frame{Kind: Reply, Op: op, Err: err} }
	watch := func(f Frame) Frame { f.Watch = true; return f }
	event := func(event int32) Frame { return Frame{Kind: Notification, Event: event} }
	for _, c := range []struct {
		Frame
		briefly, did string
	}{
		{Frame{Op: Create, Path: "/a"}, "create a", ""},
		{Frame{Op: GetData, Path: "/a", Watch: true}, "getData a, and watch", ""},
		{Frame{Op: SetWatches}, "setWatches", ""},
		{reply(Create, OK), "a", "created a"},
		{reply(Create, NodeExists), "it already exists", "tried to create a: it already exists"},
		{reply(Create, NoNode), "its parent is missing", "tried to create a: its parent is missing"},
		{reply(Delete, OK), "done", "deleted a"},
		{reply(Delete, NoNode), "no such znode", "tried to delete a: no such znode"},
		{reply(SetData, -102), "error -102", "tried to setData a: error -102"},
		{reply(SetData, OK), "done", ""},
		{reply(GetData, OK), "done", "looked at a"},
		{watch(reply(GetData, OK)), "done", "looked at a, and set a watch"},
		{watch(reply(GetData, NoNode)), "no such znode", "looked at a: no such znode"},
		{watch(reply(Exists, NoNode)), "no such znode", "looked at a: no such znode, and set a watch"},
		{Frame{Kind: Reply, Op: GetChildren, Names: 1}, "1 name", "listed a: 1 name"},
		{Frame{Kind: Reply, Op: GetChildren, Names: 2, Watch: true}, "2 names", "listed a: 2 names, and set a watch"},
		{reply(SetWatches, OK), "done", "set the watches again"},
		{reply(Ping, OK), "done", ""},
		{event(NodeCreated), "a was created", "got a notification: a was created"},
		{event(NodeDeleted), "a was deleted", "got a notification: a was deleted"},
		{event(NodeDataChanged), "the data of a changed", "got a notification: the data of a changed"},
		{event(ChildrenChanged), "the children of a changed", "got a notification: the children of a changed"},
	} {
		assert.Equal(t, c.briefly, c.Briefly("a").EN)
		assert.Equal(t, c.did, c.Did("a").EN)
	}
	assert.Equal(t, "创建了 a", reply(Create, OK).Did("a").ZH)
	assert.Equal(t, "收到通知：a 已删除", event(NodeDeleted).Did("a").ZH)
	assert.Equal(t, "nothing 已删除", event(NodeDeleted).Briefly("nothing").ZH, "a name is no word of ours")
	for _, guid := range []string{"f392195506d88c95", "1b4e28ba-2fa1-11d2-883f-0016d3cca427", "YRTL7MML3GQZ2AFBDCEXUVWKHN"} {
		assert.Equal(t, "/lock/lock-0000000001", WithoutGuid("/lock/_c_"+guid+"-lock-0000000001"))
		assert.Equal(t, "/lock/__READ__0000000001", WithoutGuid("/lock/_c_"+guid+"-__READ__0000000001"))
	}
}

func TestWhoseDoingAFrameIs(t *testing.T) {
	proof := Frame{Op: Delete, Path: "/zklock-nobody-0123456789abcdef/nothing"}
	test := Frame{Op: Exists, Path: "/"}
	for _, c := range []struct {
		Frame
		class Class
		shown bool
	}{
		{Frame{Op: Create, Path: "/lock/a"}, OfLock, true},
		{Frame{Op: Exists, Path: "/lock/a"}, OfLock, true},
		{Frame{Kind: Notification, Event: NodeDeleted, Path: "/lock/a"}, OfLock, true},
		{Frame{Op: Connect}, OfSession, true},
		{Frame{Op: SetWatches}, OfSession, true},
		{Frame{Op: Ping}, OfSession, false},
		{proof, OfProof, false},
		{test, OfTest, false},
	} {
		assert.Equal(t, c.class, c.Class(), "%v", c.Frame)
		assert.Equal(t, c.shown, c.IsShown(), "%v", c.Frame)
	}
}
