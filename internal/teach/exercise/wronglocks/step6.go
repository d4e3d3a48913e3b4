package wronglocks

import "zklock/internal/property"

var step6 = []Variant{
	{6, "a writer waits for writers only",
		"Readers and writers are two kinds, and a writer must not meet another writer.",
		[]Edit{inLock(`bothRead := ownKind == read && k == read`, `bothRead := k == read || ownKind == "" `)},
		property.Shared, "the writer arrived and was let in beside the holder"},
	{6, "a reader looks at the first only",
		"If the first is a reader, readers are inside, and one more does no harm.",
		[]Edit{inLock(`	before, highest, present := "", 0, false
`, `	lowest, inside := math.MaxInt, write
	for _, name := range names {
		if n, k, ok := number(name); ok && n < lowest {
			lowest, inside = n, k
		}
	}
	if ownKind == read && inside == read {
		return "", nil
	}
	before, highest, present := "", 0, false
`)},
		property.Shared, "overtook a waiting writer and was let in"},
	{6, "a reader waits for all before it",
		"The queue is served in its order.",
		[]Edit{inLock(`bothRead := ownKind == read && k == read`, `bothRead := ownKind == read && k == read && n < 0`)},
		property.Shared, "reader 2 waits for reader 1"},
	{6, "a reader waits for the reader before it, behind a writer",
		"Behind a writer all stand in line, and who is let in wakes the next.",
		[]Edit{inLock(`	before, highest, present := "", 0, false
`, `	writers := 0
	for _, name := range names {
		if n, k, ok := number(name); ok && k == write && n < own {
			writers++
		}
	}
	before, highest, present := "", 0, false
`), inLock(`bothRead := ownKind == read && k == read`, `bothRead := ownKind == read && k == read && writers == 0`)},
		property.Shared, "reader 3 is inside, and reader 4 is not let in"},
	{6, "no write once a read is counted",
		"Who has called RLock reads, and must not write.",
		[]Edit{inHold(`	if h.kind == read && k == write {`, `	if h.count[read] > 0 && k == write {`)},
		property.Upgrade, "asks to write inside that, and its Lock answered"},
	{6, "a reader queues again as a writer",
		"A new place is a new place: the safe kind is the writer's.",
		[]Edit{inLock(`mine, err = l.join(waiting, mine.kind) // our`, `mine, err = l.join(waiting, write) // our`)},
		property.ReaderStays, "reads, whose session had expired while it waited"},
	{6, "a reader may write",
		"Who holds the lock may lock again.",
		[]Edit{inHold(`	if h.kind == read && k == write {
		return nil, true, ErrUpgrade
	}
`, "")},
		property.Upgrade, "asks to write, and is let in"},
	{6, "a reader that wants to write queues up",
		"Who wants to write waits for the readers to go.",
		[]Edit{inHold(`		return nil, true, ErrUpgrade`, `		return nil, false, nil`)},
		property.Upgrade, "asks to write, and waits for itself"},
	{6, "counts all entries as one kind",
		"A release is a release.",
		[]Edit{inHold(`	if h.count[k] == 0 {`, `	if h.entries() == 0 {`)},
		property.ByKind, "its Unlock is accepted and ends the hold"},
	{6, "the writer's unlock ends all",
		"A writer that does not write any more lets the others in.",
		[]Edit{inHold(`	return h, h.entries() == 0, lost`, `	return h, h.count[write] == 0, lost`)},
		property.ByKind, "saw B's Unlock, whose read inside goes on, and was let in"},
	{6, "one guid for all calls",
		"The guid tells my znodes from those of others, so one for each Lock is enough.",
		[]Edit{inLock(`	s   *Session
	dir string
}`, `	s    *Session
	dir  string
	guid uint64
}`),
			inLock(`return &RWLock{s: s, dir: path}`, `return &RWLock{s: s, dir: path, guid: rand.Uint64()}`),
			inLock(`l.dir, rand.Uint64(), k)`, `l.dir, l.guid, k)`)},
		property.OwnPlace, "it was let in beside the first"},
	{6, "ends the context after the delete",
		"The hold ends when the lock is released.",
		[]Edit{inLock(`	h.release() // before anybody else can get in
	leaveErr := l.leaveInTime(h.place, func() { h.allowUnlockAgain(k) })
`, `	leaveErr := l.leaveInTime(h.place, func() { h.allowUnlockAgain(k) })
	h.release()
`)},
		property.EndsFirst, "A's context goes on"},
}
