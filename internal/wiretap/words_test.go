package wiretap

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"zklock/internal/lang"
)

func TestAFrameInWords(t *testing.T) {
	reply := func(op Op, err int32) Frame { return Frame{Kind: Reply, Op: op, Err: err} }
	watch := func(f Frame) Frame { f.Watch = true; return f }
	event := func(event int32) Frame { return Frame{Kind: Notification, Event: event} }
	for _, c := range []struct {
		Frame
		briefly, sentence string
	}{
		{Frame{Op: Create, Path: "/a"}, "create a", ""},
		{Frame{Op: GetData, Path: "/a", Watch: true}, "getData a, and watch", ""},
		{Frame{Op: SetWatches}, "setWatches", ""},
		{reply(Create, OK), "a", "B created a"},
		{reply(Create, NodeExists), "it is there already", "B tried to create a: it is there already"},
		{reply(Create, NoNode), "the znode above it is missing", "B tried to create a: the znode above it is missing"},
		{reply(Delete, OK), "done", "B deleted a"},
		{reply(Delete, NoNode), "no such znode", "B tried to delete a: no such znode"},
		{reply(SetData, -102), "error -102", "B tried to setData a: error -102"},
		{reply(SetData, OK), "done", ""},
		{reply(GetData, OK), "done", "B looked at a"},
		{watch(reply(GetData, OK)), "done", "B looked at a, and set a watch"},
		{watch(reply(GetData, NoNode)), "no such znode", "B looked at a: no such znode"},
		{watch(reply(Exists, NoNode)), "no such znode", "B looked at a: no such znode, and set a watch"},
		{Frame{Kind: Reply, Op: GetChildren, Names: 1}, "1 name", "B listed a: 1 name"},
		{Frame{Kind: Reply, Op: GetChildren, Names: 2, Watch: true}, "2 names", "B listed a: 2 names, and set a watch"},
		{reply(SetWatches, OK), "done", "B set the watches again"},
		{reply(Ping, OK), "done", ""},
		{event(NodeCreated), "a is there", "B got a notification: a is there"},
		{event(NodeDeleted), "a is gone", "B got a notification: a is gone"},
		{event(NodeDataChanged), "a has other data", "B got a notification: a has other data"},
		{event(ChildrenChanged), "a has other children", "B got a notification: a has other children"},
	} {
		assert.Equal(t, c.briefly, c.Briefly("a").EN)
		assert.Equal(t, c.sentence, c.Sentence(lang.Text{EN: "B"}, "a").EN)
	}
	assert.Equal(t, "客户端 1 创建了 a", reply(Create, OK).Sentence(lang.Text{ZH: "客户端 1"}, "a").ZH)
	assert.Equal(t, "客户端 1 收到通知：a 已消失", event(NodeDeleted).Sentence(lang.Text{ZH: "客户端 1"}, "a").ZH)
	assert.Equal(t, "nothing 已消失", event(NodeDeleted).Briefly("nothing").ZH, "a name is no word of ours")
	assert.Equal(t, "/lock/lock-0000000001", WithoutGuid("/lock/_c_f392195506d88c95-lock-0000000001"))
}
