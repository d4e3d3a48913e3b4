package wronglocks

import "zklock/internal/property"

var step5 = []Variant{
	{5, "one guid for all calls",
		"The guid tells my znodes from those of others, so one for each Lock is enough.",
		[]Edit{inLock(`	s   *Session
	dir string
}`, `	s    *Session
	dir  string
	guid uint64
}`),
			inLock(`return &Lock{s: s, dir: path}`, `return &Lock{s: s, dir: path, guid: rand.Uint64()}`),
			inLock(`l.dir, rand.Uint64())`, `l.dir, l.guid)`)},
		property.OwnPlace, "it was let in beside the first"},
	{5, "lists without asking first",
		"If the server has made my znode, it is in the list.",
		[]Edit{inLock(`	if err := l.s.ask(); err != nil {
		return "", err
	}
`, "")},
		property.LaggingServer, "did not know of it"},
	{5, "takes any znode with its guid",
		"The guid is mine alone, so the znode is mine.",
		[]Edit{inLock(`if stat.EphemeralOwner == owner {`, `if stat.EphemeralOwner != 0 {`)},
		property.OldZnode, "had gone, and was let in beside the holder"},
	{5, "creates again without looking",
		"The create was not answered, so it has failed, and I try again.",
		[]Edit{inLock(`notDone := nothingDone(createErr)`, `notDone := createErr != nil`)},
		property.LostCreateReply, "A waits behind a znode of its own"},
	{5, "leaves a lost create to its caller",
		"The create was not answered, and the caller may try again.",
		[]Edit{inLock(`final := createErr != nil && !l.s.canRetry(createErr)`, `final := createErr != nil`)},
		property.LostCreateReply, "A waits behind a znode of its own"},
	{5, "does not look at the lease",
		"My znode is the first, so I hold the lock.",
		[]Edit{inLock(`if l.s.isOver(current) {`, `if l.s.isClosed() {`)},
		property.AliveAtEntry, "was let in, and its context had ended"},
	{5, "takes the lease when it begins to wait",
		"The lease is renewed as long as I need it.",
		[]Edit{inLock(`	conn := l.s.Conn()
	for waiting.Err() == nil {
		// The lease`, `	conn := l.s.Conn()
	current := l.s.takeLease()
	for waiting.Err() == nil {
		// The lease`),
			inLock(`		current := l.s.takeLease()
`, "")},
		property.AliveAtEntry, "B is not let in"},
	{5, "takes the lease after the list",
		"First I look whether it is my turn, and then whether I can rely on the session.",
		[]Edit{inLock(`		current := l.s.takeLease()
`, ""),
			inLock(`		nobodyToWaitFor := before == ""
`, `		current := l.s.takeLease()
		nobodyToWaitFor := before == ""
`)},
		property.OutageAtEntry, "and A beside it, with a new session"},
	{5, "ends the context after the delete",
		"The hold ends when the lock is released.",
		[]Edit{inLock(`	h.release() // before anybody else can get in
	leaveErr := l.leaveInTime(h.place, h.allowUnlockAgain)
`, `	leaveErr := l.leaveInTime(h.place, h.allowUnlockAgain)
	h.release()
`)},
		property.EndsFirst, "A's context goes on"},
	{5, "gives up when its session expires",
		"My place in the queue has gone, so I cannot get the lock any more.",
		[]Edit{inLock(`			mine, err = l.join(waiting) // our znode has gone, too
			if err != nil {
				return place{}, err
			}
			continue
		}
		if err != nil {
			return mine, err // refused`, `			return place{}, ErrLost
		}
		if err != nil {
			return mine, err // refused`)},
		property.LostWhileWaiting, "and B's Lock answered"},
	{5, "does not look for itself",
		"I have made my znode, so it is there.",
		[]Edit{inLock(`	if !present {`, `	if !present && len(names) == 0 {`)},
		property.NotBeside, "let in beside"},
	{5, "the time is the token",
		"The time grows, so a later holder has a greater token.",
		[]Edit{inLock(`mine.token = stat.Pzxid`, `mine.token = max(time.Now().UnixMilli(), int64(stat.Version))`)},
		property.Fenced, "the time of day, in ms"},
	{5, "the own number is the token",
		"The server's numbers only grow.",
		[]Edit{inLock(`mine.token = stat.Pzxid`, `own, _ := number(pathpkg.Base(mine.node))
			mine.token = int64(own) + int64(stat.Version)`)},
		property.Fenced, "got token 0 after token"},
	{5, "the directory's changes are the token",
		"The server counts the changes of the directory, and each holder has made one.",
		[]Edit{inLock(`mine.token = stat.Pzxid`, `mine.token = int64(stat.Cversion)`)},
		property.Fenced, "after token"},
	{5, "a list that fails ends the wait",
		"What the server does not answer, I give back to the caller.",
		[]Edit{inLock(`		if l.s.canRetry(err) {
			pause()
			continue
		}
		sessionEnded`, `		sessionEnded`)},
		property.LineBreaks, "its line broke at its getChildren, and its Lock answered"},
	{5, "a read that fails ends the wait",
		"What the server does not answer, I give back to the caller.",
		[]Edit{inLock(`		if l.s.canRetry(err) {
			pause()
			continue
		}
		if err != nil {
			return mine, err
		}
		if conn`, `		if err != nil {
			return mine, err
		}
		if conn`)},
		property.LineBreaks, "its line broke at its getData, and its Lock answered"},
	{5, "does not say why the context ended",
		"A context that is cancelled says enough.",
		[]Edit{inHold(`func (h *hold) lose() { h.end(ErrLost) }`, `func (h *hold) lose() { h.end(context.Canceled) }`)},
		property.LossLetsNobodyIn, "ended with the cause"},
	{5, "deletes what it has lost",
		"The lock is lost, so its znode has to go.",
		[]Edit{inHold(`h.stopUsing = lock.s.useLease(mine.lease, h.lose)`, `h.stopUsing = lock.s.useLease(mine.lease, func() {
		h.lose()
		go func() { _ = lock.leave(mine) }()
	})`)},
		property.LossLetsNobodyIn, "saw that A had lost the lock and was let in"},
	{5, "does not look after its lease",
		"The client library keeps the session alive.",
		[]Edit{inHold(`h.stopUsing = lock.s.useLease(mine.lease, h.lose)`, `h.stopUsing = func() {}`)},
		property.ToldOfLoss, "A has not been told"},
	{5, "looks after its lease for ever",
		"The session can be relied on, so the next Lock is faster.",
		[]Edit{inHold(`	h.end(errReleased)
	h.stopUsing()`, `	h.end(errReleased)`)},
		property.QuietAfter, "A has released the lock, and sent"},
	{5, "makes its context of nothing",
		"The lock is the process's, whatever becomes of the caller.",
		[]Edit{inHold(`held, end := context.WithCancelCause(ctx)`, `held, end := context.WithCancelCause(context.WithoutCancel(ctx))`)},
		property.EndsWithCaller, "the hold's goes on"},
	{5, "one hold for all locks",
		"The context carries the hold, so who has one may come in.",
		[]Edit{inHold(`	held = context.WithValue(held, holdKey{h.lock}, c)`, `	held = context.WithValue(held, holdKey{}, c)`),
			inHold(`ctx.Value(holdKey{lock})`, `ctx.Value(holdKey{})`),
			inHold(`ctx.Value(holdKey{h.lock})`, `ctx.Value(holdKey{})`)},
		property.LocksAgain, "that one's queue is []"},
	{5, "a hold that was released counts",
		"The context carries the hold, and so it may enter again.",
		[]Edit{inHold(`	if h.count == 0 {
		return nil, false, nil
	}
	if h.ended`, `	if h.ended`)},
		property.OwnHold, "A's Lock answered"},
	{5, "one unlock ends all",
		"Unlock releases the lock.",
		[]Edit{inHold(`	return h, h.count == 0, lost`, `	h.count = 0
	return h, true, lost`)},
		property.LocksAgain, "saw A release once of two times and was let in"},
	{5, "the Lock knows that it is held",
		"Who holds the lock may lock again, and the Lock knows whether it is held.",
		[]Edit{inLock(`	s   *Session
	dir string
}`, `	s      *Session
	dir    string
	inside atomic.Pointer[heldContext]
}`), inLock(`	"strings"
`, `	"strings"
	"sync/atomic"
`),
			inHold(`	h.contexts[c] = true
`, `	h.contexts[c] = true
	h.lock.inside.Store(c)
`),
			inHold(`	c, ok := ctx.Value(holdKey{lock}).(*heldContext)
	if !ok {`, `	c := lock.inside.Load()
	if c == nil {`),
			inHold(`ctx.Value(holdKey{h.lock}).(*heldContext)`, `h.lock.inside.Load()`)},
		property.ManyShare, "called Lock in another goroutine and was let in beside the holder"},
	{5, "does not try a delete again",
		"The delete was not answered, and the caller may try again.",
		[]Edit{inLock(`		if !l.s.canRetry(err) {
			return err
		}
		if !nothingDone`, `		if err != nil {
			return err
		}
		if !nothingDone`)},
		property.LostDeleteReply, "A's delete was carried out and the reply lost"},
	{5, "takes its own delete for a loss",
		"The znode is not there, so somebody else has deleted it.",
		[]Edit{inLock(`			mayBeDone = true`, `			mayBeDone = false`)},
		property.LostDeleteReply, "A's delete was carried out and the reply lost"},
	{5, "is glad if its znode has gone",
		"Unlock has to make the znode go. If it has gone already, all is well.",
		[]Edit{inLock(`		if errors.Is(err, zk.ErrNoNode) {
			return ErrLost
		}`, `		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}`)},
		property.LostTold, "said that all was well"},
	{5, "unlocks as long as it takes",
		"Unlock returns when the lock is released.",
		[]Edit{inLock(`	select {
	case err := <-result:
		return err
	case <-time.After(l.s.Timeout()):
		return fmt.Errorf("no answer for %v, and the delete goes on: %w", l.s.Timeout(), ErrLost)
	}`, `	return <-result`)},
		property.UnlockEnds, "its Unlock had not come back"},
	{5, "gives up when the answer has come",
		"Lock looks at the context before each request.",
		[]Edit{inLock(`	if err := l.s.giveUpAt(waiting, do, late); err != nil {
`, `	_ = late
	if err := do(); err != nil {
`)},
		property.GivesUpAtOnce, "did not return before it had come"},
	{5, "keeps what came too late",
		"Nobody waits for the answer any more.",
		[]Edit{inLock(`			_ = l.leave(mine) // queueUp has returned already, and nobody will use our place
`, "")},
		property.GivingUp, "F gave up, and left"},
	{5, "a try that ends the hold",
		"What TryLock returns is made from the context that it waited with.",
		[]Edit{inLock(`	return begin(ctx, l, mine), nil`, `	return begin(waiting, l, mine), nil`)},
		property.Tries, "got the lock, and the hold ended"},
	{5, "a try that leaves its znode",
		"Somebody else holds the lock, so there is nothing to release.",
		[]Edit{inLock(`			return mine, ErrLocked`, `			return place{}, ErrLocked`)},
		property.Tries, "has left"},
	{5, "goes by the state of the line",
		"When the client is disconnected, the lock cannot be relied on.",
		[]Edit{inHold(`	h.stopUsing = lock.s.useLease(mine.lease, h.lose)
`, `	h.stopUsing = lock.s.useLease(mine.lease, h.lose)
	go func() {
		for held.Err() == nil {
			if lock.s.Conn().State() != zk.StateHasSession {
				h.lose()
			}
			time.Sleep(time.Millisecond)
		}
	}()
`), inHold(`	"sync"
)`, `	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)`)},
		property.ShortBreak, "its session lives, and its context ended"},
	{5, "enters again with any context",
		"A context that carries the hold ends with the hold.",
		[]Edit{inHold(`	if h.endsWithHold(ctx) {`, `	if h.endsWithHold(ctx) || h.count > 0 {`)},
		property.LossLetsNobodyIn, "one of its contexts goes on"},
	{5, "deletes the version that it has made",
		"A new znode has version 0, so nobody else's is deleted.",
		[]Edit{inLock(`Delete(mine.node, -1)`, `Delete(mine.node, 0)`)},
		property.WhateverIsInIt, "somebody wrote into"},
	{5, "asks if it exists",
		"ExistsW tells whether the znode is there, and sets the watch.",
		[]Edit{inLock(`		_, _, gone, err := conn.GetW(l.dir + "/" + before)
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}`, `		there, _, gone, err := conn.ExistsW(l.dir + "/" + before)
		if err == nil && !there {
			continue
		}`)},
		property.NoWatchLeft, "still has a watch at the server"},
}
