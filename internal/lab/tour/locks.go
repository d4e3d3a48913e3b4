package tour

import (
	"zklock/internal/lab/locks"
	"zklock/internal/lab/stage"
	"zklock/internal/property"
)

// An Exhibit is a lock that the tour shows.
type Exhibit struct {
	locks.Entry
	Subject property.Subject
}

// among reports whether the lock's key is one of keys.
func (l Exhibit) among(keys ...string) bool {
	for _, key := range keys {
		if l.Key == key {
			return true
		}
	}
	return false
}

// onPage returns the lock as the stage's page shows it.
func (l Exhibit) onPage() stage.Column {
	return stage.Column{Key: l.Key, Heading: l.Heading(), Lesson: l.Lesson}
}

// Locks lists all locks that the tour shows. First come the steps, and among them step 3's lock
// without a queue. The production lock and the Go client's own lock are last, because they follow
// the lessons.
var Locks = func() (all []Exhibit) {
	for _, l := range locks.Locks {
		if l.Key == "zk" {
			all = append(all, leased())
		}
		if l.Title != "" {
			all = append(all, Exhibit{l, locks.Of(l.Key)})
		}
	}
	return all
}()

// leased returns the production lock, which readers can share.
func leased() Exhibit {
	subject := locks.RWMutex
	subject.Name = "leased"
	return Exhibit{locks.Entry{
		Key:     "leased",
		Subject: subject.Name,
		Folder:  "leased",
		Beside:  true,
		Title:   "lease",
		Name:    text("leased, the production lock", "leased，生产环境用的锁"),
		Lesson: text(
			"The production lock: what steps 5 and 6 teach, and a lease that outlives a brief disconnect.",
			"生产环境用的锁：包含第 5、6 步所讲的内容，再加上租约，所以连接断开片刻也不会丢锁。",
		),
	}, subject}
}
