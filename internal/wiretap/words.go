package wiretap

import (
	"regexp"

	"zklock/internal/lang"
)

// Briefly describes a frame in a few words: what a request asks for, what a reply answers, or what
// a notification reports. path is the frame's path, as it is to be shown.
func (f Frame) Briefly(path string) lang.Text {
	switch {
	case f.Kind == Notification:
		return f.event(path)
	case f.Kind == Reply:
		return f.answer(path)
	case f.Path == "":
		return lang.Text{EN: f.Op.String(), ZH: f.Op.String()}
	case f.Watch:
		return lang.Of("%v %v, and watch", "%v %v，并监听", f.Op, path)
	}
	return lang.Of("%v %v", "%v %v", f.Op, path)
}

// event is what a notification reports.
func (f Frame) event(name string) lang.Text {
	switch f.Event {
	case NodeCreated:
		return lang.Of("%v was created", "%v 已创建", name)
	case NodeDeleted:
		return lang.Of("%v was deleted", "%v 已删除", name)
	case ChildrenChanged:
		return lang.Of("the children of %v changed", "%v 的子节点变了", name)
	}
	return lang.Of("the data of %v changed", "%v 的数据变了", name)
}

// answer is what a reply says. The answer to a create is the name of the new znode.
func (f Frame) answer(name string) lang.Text {
	switch {
	case f.Err == NoNode && f.Op == Create:
		return lang.Text{EN: "its parent is missing", ZH: "它的父节点不存在"}
	case f.Err == NoNode:
		return lang.Text{EN: "no such znode", ZH: "没有这个 znode"}
	case f.Err == NodeExists:
		return lang.Text{EN: "it already exists", ZH: "它已经存在"}
	case f.Err != OK:
		return lang.Of("error %d", "错误 %d", f.Err)
	case f.Op == Create:
		return lang.Text{EN: name, ZH: name}
	case f.Op == GetChildren && f.Names == 1:
		return lang.Text{EN: "1 name", ZH: "1 个名字"}
	case f.Op == GetChildren:
		return lang.Of("%d names", "%d 个名字", f.Names)
	}
	return lang.Text{EN: "done", ZH: "完成"}
}

// Did says what a client has done, once the reply has arrived, or that it was notified. It is a
// sentence without its subject, which can also be several clients. It is empty for a frame that
// needs no sentence.
func (f Frame) Did(path string) lang.Text {
	switch f.Kind {
	case Request:
		return lang.Text{}
	case Notification:
		return lang.Of("got a notification: %v", "收到通知：%v", f.event(path))
	}
	did := f.deed(path)
	if f.setsWatch() {
		return lang.Of("%v, and set a watch", "%v，并设置了监听器", did)
	}
	return did
}

// deed says what a client has done by a request, according to the reply.
func (f Frame) deed(path string) lang.Text {
	isLook := f.Op == GetData || f.Op == Exists
	isRefused := f.Err != OK
	switch {
	case f.Op == SetWatches:
		return lang.Text{EN: "set the watches again", ZH: "重新设置了监听器"}
	case f.Class() != OfLock:
		return lang.Text{}
	case f.Op == GetChildren:
		return lang.Of("listed %v: %v", "列出 %v：%v", path, f.answer(path))
	case isLook && isRefused:
		return lang.Of("looked at %v: %v", "查看 %v：%v", path, f.answer(path))
	case isLook:
		return lang.Of("looked at %v", "查看了 %v", path)
	case isRefused && f.Op == Create:
		return lang.Of("tried to create %v: %v", "试图创建 %v：%v", path, f.answer(path))
	case isRefused && f.Op == Delete:
		return lang.Of("tried to delete %v: %v", "试图删除 %v：%v", path, f.answer(path))
	case isRefused:
		return lang.Of("tried to %v %v: %v", "试图 %v %v：%v", f.Op, path, f.answer(path))
	case f.Op == Create:
		return lang.Of("created %v", "创建了 %v", path)
	case f.Op == Delete:
		return lang.Of("deleted %v", "删除了 %v", path)
	}
	return lang.Text{}
}

// guid is the random part of a znode's name, by which a client recognizes its own znode:
// hexadecimal digits, as in Curator's names and ours, or other letters, as from crypto/rand.Text.
var guid = regexp.MustCompile(`_c_([0-9A-Fa-f-]+|[0-9A-Za-z]+)-`)

// WithoutGuid removes the random part from the names in a text.
func WithoutGuid(text string) string { return guid.ReplaceAllString(text, "") }
