package reentrant

import (
	"context"
	"sync"
)

// Hold is what Lock returns: the lock is held, until Unlock. Only a caller that has the Hold can
// unlock through this package. It is safe for use by many goroutines.
type Hold struct {
	lock *Lock
	mine place

	mu    sync.Mutex
	count int // 1, and 0 once it is released
}

func newHold(l *Lock, mine place) *Hold {
	return &Hold{lock: l, mine: mine, count: 1}
}

// Context is for the work under the lock. It is made from parent, and ends with it.
//
// TODO 4: a holder that locks again passes this context. What must it carry?
// 待办 4：持有者再次加锁时，会传入这个 context。它要带上什么？
// TODO 6: it must end when the lock is lost.
// 待办 6：锁丢了，它要结束。
func (h *Hold) Context(parent context.Context) context.Context { return parent }

// Token is the fencing token.
//
// TODO 7: it must be greater than those of all earlier holds on the same path.
// 待办 7：它要比同一路径上以前每次持锁的都大。
func (h *Hold) Token() int64 { return 0 }
