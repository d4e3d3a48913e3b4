package wiretap

import (
	"regexp"

	"zklock/internal/upkeep/words"
)

// shown is a frame's path, as it is to be shown. It is no string, so it is not translated,
// even if a znode is called "nothing".
type shown string

// Briefly is a frame in a few words: what a request asks for, what a reply answers, or what
// a notification tells. path is the frame's, as it is to be shown.
func (f Frame) Briefly(path string) words.Text {
	name := shown(path)
	switch {
	case f.Kind == Notification:
		return f.event(name)
	case f.Kind == Reply:
		return f.answer(name)
	case f.Path == "":
		return words.Whole(f.Op.String())
	case f.Watch:
		return words.Of("%v %v, and watch", f.Op, name)
	}
	return words.Of("%v %v", f.Op, name)
}

// event is what a notification tells.
func (f Frame) event(name shown) words.Text {
	switch f.Event {
	case NodeCreated:
		return words.Of("%v is there", name)
	case NodeDeleted:
		return words.Of("%v is gone", name)
	case ChildrenChanged:
		return words.Of("%v has other children", name)
	}
	return words.Of("%v has other data", name)
}

// answer is what a reply says. That to a create is the name of the new znode.
func (f Frame) answer(name shown) words.Text {
	switch {
	case f.Err == NoNode && f.Op == Create:
		return words.Of("the znode above it is missing")
	case f.Err == NoNode:
		return words.Of("no such znode")
	case f.Err == NodeExists:
		return words.Of("it is there already")
	case f.Err != OK:
		return words.Of("error %d", f.Err)
	case f.Op == Create:
		return words.Of("%v", name)
	case f.Op == GetChildren && f.Names == 1:
		return words.Of("1 name")
	case f.Op == GetChildren:
		return words.Of("%d names", f.Names)
	}
	return words.Of("done")
}

// Sentence says what a client has done, when the reply is there, or that it was notified. It
// is empty for a request, and for what is not worth a sentence. who may also be several
// clients: a verb in the past is the same for them.
func (f Frame) Sentence(who words.Text, path string) words.Text {
	name := shown(path)
	if f.Kind == Notification {
		return words.Of("%v got a notification: %v", who, f.event(name))
	}
	if f.Kind == Request {
		return words.Text{}
	}
	did := f.deed(who, name)
	if f.setsWatch() {
		return words.Of("%v, and set a watch", did)
	}
	return did
}

// deed says what a client has done by a request, as the reply tells it.
func (f Frame) deed(who words.Text, name shown) words.Text {
	isLook := f.Op == GetData || f.Op == Exists
	isRefused := f.Err != OK
	switch {
	case f.Op == SetWatches:
		return words.Of("%v set the watches again", who)
	case f.IsOfSession():
		return words.Text{}
	case f.Op == GetChildren:
		return words.Of("%v listed %v: %v", who, name, f.answer(name))
	case isLook && isRefused:
		return words.Of("%v looked at %v: %v", who, name, f.answer(name))
	case isLook:
		return words.Of("%v looked at %v", who, name)
	case isRefused && f.Op == Create:
		return words.Of("%v tried to create %v: %v", who, name, f.answer(name))
	case isRefused && f.Op == Delete:
		return words.Of("%v tried to delete %v: %v", who, name, f.answer(name))
	case isRefused:
		return words.Of("%v tried to %v %v: %v", who, f.Op, name, f.answer(name))
	case f.Op == Create:
		return words.Of("%v created %v", who, name)
	case f.Op == Delete:
		return words.Of("%v deleted %v", who, name)
	}
	return words.Text{}
}

// guid is the random part of a znode's name, by which a client knows its own.
var guid = regexp.MustCompile(`_c_[0-9a-f-]+-`)

// WithoutGuid leaves the random part out of the names in a text.
func WithoutGuid(text string) string { return guid.ReplaceAllString(text, "") }
