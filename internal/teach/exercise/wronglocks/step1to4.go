package wronglocks

import "zklock/internal/property"

var step1 = []Variant{
	{1, "takes an error for the lock",
		"The create has answered that the znode is there, and that is what I wanted.",
		[]Edit{inLock(`		if !errors.Is(err, zk.ErrNodeExists) {
			return failed`, `		if errors.Is(err, zk.ErrNodeExists) {
			return nil
		}
		if err != nil {
			return failed`)},
		property.OneHolder, "was let in beside the holder"},
	{1, "does not look at its context",
		"The waiter's select knows of the context, and that is enough.",
		[]Edit{inLock(`		if err := ctx.Err(); err != nil {
			return failed("lock", l.path, err)
		}
`, "")},
		property.GivingUp, "its Lock does not return"},
	{1, "gives up with the lock in its hand",
		"When the context has ended, Lock returns its error, whatever the create has answered.",
		[]Edit{inLock(`		if err == nil {
			return nil
		}
		if !errors`, `		if ctx.Err() != nil {
			return failed("lock", l.path, ctx.Err())
		}
		if err == nil {
			return nil
		}
		if !errors`)},
		property.GivingUp, "F gave up, and left"},
	{1, "is ephemeral by its name alone",
		"When a process ends, the client library deletes what it has made.",
		[]Edit{inLock(`path: path, mode: zk.FlagEphemeral, poll`, `path: path, mode: zk.FlagPersistent, poll`)},
		property.CrashFrees, "its znode is not, and B waits"},
	{1, "deletes the version that it has made",
		"A new znode has version 0, so nobody else's is deleted.",
		[]Edit{inLock(`Delete(l.path, -1)`, `Delete(l.path, 0)`)},
		property.WhateverIsInIt, "somebody wrote into the znodes"},
	{1, "is glad if the lock is free",
		"Unlock has to make the lock free. If it is free already, all is well.",
		[]Edit{inLock(`	return failed("unlock", l.path, l.conn.Delete(l.path, -1))`, `	err := l.conn.Delete(l.path, -1)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return failed("unlock", l.path, err)`)},
		property.LostTold, "said that all was well"},
	{1, "asks without a rest",
		"The server is fast, and the sooner I ask again, the sooner I am in.",
		[]Edit{inLock(`const pollInterval = 20 * time.Millisecond`, `const pollInterval = 0 * time.Millisecond`)},
		property.LongHold, "it does not rest between two"},
}

var step2 = []Variant{
	{2, "the znode is persistent",
		"A sequential znode is all that a queue needs.",
		[]Edit{inLock(`l.dir+"/lock-", zk.FlagEphemeralSequential`, `l.dir+"/lock-", zk.FlagSequence`)},
		property.CrashFrees, "its znode is not, and B waits"},
	{2, "compares itself with itself",
		"I compare each number with my own: a slip reads both out of my own name.",
		[]Edit{inLock(`number(name); ok && n < own`, `number(mine); ok && n < own`)},
		property.OneHolder, "was let in beside the holder"},
	{2, "goes on after an error",
		"An error while I wait is not mine to handle. The wait is over, so it is my turn.",
		[]Edit{inLock(`	if err := l.wait(ctx, node); err != nil {
		return failed("lock", l.dir, errors.Join(err, l.leave(node)))
	}
`, `	_ = l.wait(ctx, node)
`)},
		property.OneHolder, "lost its connection while A held the lock, and was let in"},
	{2, "counts itself as one before it",
		"I am the first when no number is less than mine, or equal to it.",
		[]Edit{inLock(`ok && n < own`, `ok && n <= own`)},
		property.ReleaseSeen, "nobody holds the lock, and A is not let in"},
	{2, "compares names",
		"The numbers have ten digits each, so the names have the same order.",
		[]Edit{inLock(`if n, ok := number(name); ok && n < own {`, `if name < mine {`)},
		property.Unrelated, "nobody holds the lock, and A waits"},
	{2, "does not look for itself",
		"I have made my znode, so it is there.",
		[]Edit{inLock(`	if !slices.Contains(names, mine) {`, `	if !slices.Contains(names, mine) && len(names) == 0 {`)},
		property.NotBeside, "B was let in beside it"},
	{2, "forgets its znode",
		"The caller has given up, so nothing is left to do.",
		[]Edit{inLock(`errors.Join(err, l.leave(node))`, `err`)},
		property.GivingUp, "B gave up, and left"},
	{2, "leaves only when the caller gives up",
		"After an error of the line I cannot delete anything.",
		[]Edit{inLock(`		return failed("lock", l.dir, errors.Join(err, l.leave(node)))`, `		if ctx.Err() != nil {
			err = errors.Join(err, l.leave(node))
		}
		return failed("lock", l.dir, err)`)},
		property.FailsClean, "and left"},
	{2, "deletes the first",
		"The holder's znode is the first, so Unlock deletes the first.",
		[]Edit{inLock(`	node := l.node
	err := l.conn`, `	node := l.node
	names, _, _ := l.conn.Children(l.dir)
	for _, name := range names {
		if l.dir+"/"+name < node || len(names) == 1 {
			node = l.dir + "/" + name
		}
	}
	err := l.conn`)},
		property.NoStranger, "its late Unlock deleted"},
	{2, "notes its znode before it waits",
		"Unlock has to know the znode, so Lock notes it at once.",
		[]Edit{inLock(`	if err := l.wait(ctx, node); err != nil {`, `	l.mu.Lock()
	l.node = node
	l.mu.Unlock()
	if err := l.wait(ctx, node); err != nil {`)},
		property.ManyShare, "A's other goroutine released, and A"},
	{2, "waits with the mutex in its hand",
		"The Lock is used by many goroutines, so Lock begins with its mutex.",
		[]Edit{inLock(`	node, err := create(l.conn, l.dir`, `	l.mu.Lock()
	defer l.mu.Unlock()
	node, err := create(l.conn, l.dir`),
			inLock(`	l.mu.Lock()
	defer l.mu.Unlock()
	l.node = node
	return nil`, `	l.node = node
	return nil`)},
		property.ManyShare, "does not return while another one waits in Lock"},
	{2, "wants to make the parents alone",
		"If the parent cannot be made, the lock cannot be made either.",
		[]Edit{inLock(`	if err != nil && !errors.Is(err, zk.ErrNodeExists) {`, `	if err != nil {`)},
		property.ParentsMade, "made the lock's parents together with B"},
	{2, "forgets the lock when a delete fails",
		"Unlock was called, so the lock is not held any more.",
		[]Edit{inLock(`	if err == nil || errors.Is(err, zk.ErrNoNode) {
		l.node = ""
	}`, `	l.node = ""`)},
		property.UnlockRepeated, "when it was called again"},
	{2, "is glad if its znode has gone",
		"Unlock has to make the znode go. If it has gone already, all is well.",
		[]Edit{inLock(`	return failed("unlock", node, err)`, `	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return failed("unlock", node, err)`)},
		property.LostTold, "said that all was well"},
	{2, "asks without a rest",
		"The server is fast, and the sooner I ask again, the sooner I am in.",
		[]Edit{inLock(`const pollInterval = 20 * time.Millisecond`, `const pollInterval = 0 * time.Millisecond`)},
		property.LongHold, "it does not rest between two"},
	{2, "waits whatever its context says",
		"Who has queued up wants the lock.",
		[]Edit{inLock(`		select {
		case <-time.After(l.poll):
		case <-ctx.Done():
			return ctx.Err()
		}`, `		<-time.After(l.poll)`)},
		property.GivingUp, "its Lock does not return"},
	{2, "unlocks a second time",
		"The znode's path stays in the Lock: nobody else uses it.",
		[]Edit{inLock(`	if err == nil || errors.Is(err, zk.ErrNoNode) {
		l.node = ""
	}
	return failed("unlock", node, err)`, `	return failed("unlock", node, err)`)},
		property.UnlockTooMany, "a second Unlock answered"},
}

var step3 = []Variant{
	{3, "lists, and then watches",
		"First I look whether it is my turn, and if not, I set a watch.",
		[]Edit{inLock(`names, _, changed, err := l.conn.ChildrenW(l.dir)`, `names, _, err := l.conn.Children(l.dir)`),
			inLock(`		select {
		case event`, `		_, _, changed, err := l.conn.ChildrenW(l.dir)
		if err != nil {
			return err
		}
		select {
		case event`)},
		property.ReleaseSeen, "request number 3 was on its way, and B is not let in"},
	{3, "trusts the wake-up",
		"I was woken, so the lock is free.",
		[]Edit{inLock(`			if event.Err != nil { // the session has ended: no event will come
				return event.Err
			}`, `			return event.Err`)},
		property.OneHolder, "was let in beside the holder"},
	{3, "watches the directory's data",
		"The queue is in the directory, so I watch the directory.",
		[]Edit{inLock(`names, _, changed, err := l.conn.ChildrenW(l.dir)`, `names, _, err := l.conn.Children(l.dir)`),
			inLock(`		select {
		case event`, `		_, _, changed, err := l.conn.GetW(l.dir)
		if err != nil {
			return err
		}
		select {
		case event`)},
		property.ReleaseSeen, "and B is not let in"},
	{3, "sets one watch for all",
		"I set the watch once, and it wakes me at each change.",
		[]Edit{inLock(`	for {
		names, _, changed, err := l.conn.ChildrenW(l.dir)
`, `	_, _, changed, err := l.conn.ChildrenW(l.dir)
	if err != nil {
		return err
	}
	for {
		names, _, err := l.conn.Children(l.dir)
`)},
		property.SilentWait, "5 waiters sent "},
	{3, "looks now and then, too",
		"A watch can get lost, so I look now and then to be sure.",
		[]Edit{inLock(`	"sync"
`, `	"sync"
	"time"
`), inLock(`		case <-ctx.Done():`, `		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():`)},
		property.SilentWait, "5 waiters sent "},
	{3, "looks every five seconds, too",
		"A watch can get lost, and a look now and then costs next to nothing.",
		[]Edit{inLock(`	"sync"
`, `	"sync"
	"time"
`), inLock(`		case <-ctx.Done():`, `		case <-time.After(5 * time.Second):
		case <-ctx.Done():`)},
		property.SilentForLong, "2 waiters sent "},
	{3, "sleeps whatever its context says",
		"The watch will wake me.",
		[]Edit{inLock(`		select {
		case event := <-changed:
			if event.Err != nil { // the session has ended: no event will come
				return event.Err
			}
		case <-ctx.Done():
			return ctx.Err()
		}`, `		event := <-changed
		if event.Err != nil {
			return event.Err
		}`)},
		property.GivingUp, "its Lock does not return"},
	{3, "does not look for itself",
		"I have made my znode, so it is there.",
		[]Edit{inLock(`	if !slices.Contains(names, mine) {`, `	if !slices.Contains(names, mine) && len(names) == 0 {`)},
		property.NotBeside, "B was let in beside it"},
}

var step4 = []Variant{
	{4, "asks in turn for the list and the znode",
		"I rest between two looks, and each look is at the one znode that I wait for.",
		[]Edit{inLock(`		_, _, gone, err := l.conn.GetW(l.dir + "/" + before)`, `		_, _, err = l.conn.Get(l.dir + "/" + before)`),
			inLock(`		case event := <-gone:
			if event.Err != nil { // the session has ended: no event will come
				return event.Err
			}
`, `		case <-time.After(20 * time.Millisecond):
`), inLock(`	"sync"
`, `	"sync"
	"time"
`)},
		property.SilentWait, "getData:"},
	{4, "trusts the wake-up",
		"The znode before mine has gone, so it is my turn.",
		[]Edit{inLock(`			if event.Err != nil { // the session has ended: no event will come
				return event.Err
			}`, `			return event.Err`)},
		property.WaiterCrash, "saw the waiter B die and was let in"},
	{4, "asks if it exists",
		"ExistsW tells whether the znode is there, and sets the watch.",
		[]Edit{inLock(`		_, _, gone, err := l.conn.GetW(l.dir + "/" + before)
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}`, `		there, _, gone, err := l.conn.ExistsW(l.dir + "/" + before)
		if err == nil && !there {
			continue
		}`)},
		property.NoWatchLeft, "still has a watch at the server"},
	{4, "watches the holder",
		"I wait for the lock, and the first in the queue has it.",
		[]Edit{inLock(`(before == "" || n > highest)`, `(before == "" || n < highest)`)},
		property.WakesOne, "one release sent 5 notifications"},
	{4, "takes what has gone for its turn",
		"The znode before mine is not there any more, so it is my turn.",
		[]Edit{inLock(`		if errors.Is(err, zk.ErrNoNode) {
			continue
		}`, `		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}`)},
		property.NoWatchLeft, "watched a znode that was gone and was let in"},
	{4, "takes what has gone for an error",
		"What I watch has to be there.",
		[]Edit{inLock(`		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
`, "")},
		property.ReleaseSeen, "B's Lock answered"},
	{4, "overlooks number zero",
		"I search for the greatest number below mine, and begin at 0.",
		[]Edit{inLock(`(before == "" || n > highest)`, `n > highest`)},
		property.OneHolder, "was let in beside the holder"},
	{4, "does not look for itself",
		"I have made my znode, so it is there.",
		[]Edit{inLock(`	if !slices.Contains(names, mine) {`, `	if !slices.Contains(names, mine) && len(names) == 0 {`)},
		property.NotBeside, "B was let in beside it"},
	{4, "watches its own znode",
		"The server tells me when something happens to my znode.",
		[]Edit{inLock(`l.conn.GetW(l.dir + "/" + before)`, `l.conn.GetW(node)`)},
		property.ReleaseSeen, "and B is not let in"},
	{4, "waits for its own number less one",
		"The numbers have no gaps.",
		[]Edit{inLock(`ok && n < own && (before == "" || n > highest)`, `ok && n == own-1 && n >= highest`)},
		property.WaiterCrash, "saw the waiter B die and was let in"},
	{4, "leaves with the version that it has made",
		"A new znode has version 0, so nobody else's is deleted.",
		[]Edit{inLock(`	err := l.conn.Delete(node, -1)
	if err == nil || errors.Is(err, zk.ErrNoNode) { // or gone`, `	err := l.conn.Delete(node, 0)
	if err == nil || errors.Is(err, zk.ErrNoNode) { // or gone`)},
		property.WhateverIsInIt, "somebody wrote into"},
	{4, "notes its znode before it waits",
		"Unlock has to know the znode, so Lock notes it at once.",
		[]Edit{inLock(`	if err := l.wait(ctx, node); err != nil {`, `	l.mu.Lock()
	l.node = node
	l.mu.Unlock()
	if err := l.wait(ctx, node); err != nil {`)},
		property.ManyShare, "A's other goroutine released, and A"},
	{4, "sleeps whatever its context says",
		"The watch will wake me.",
		[]Edit{inLock(`		select {
		case event := <-gone:
			if event.Err != nil { // the session has ended: no event will come
				return event.Err
			}
		case <-ctx.Done():
			return ctx.Err()
		}`, `		event := <-gone
		if event.Err != nil {
			return event.Err
		}`)},
		property.GivingUp, "its Lock does not return"},
	{4, "forgets the lock when a delete fails",
		"Unlock was called, so the lock is not held any more.",
		[]Edit{inLock(`	if err == nil || errors.Is(err, zk.ErrNoNode) {
		l.node = ""
	}`, `	l.node = ""`)},
		property.UnlockRepeated, "when it was called again"},
}
