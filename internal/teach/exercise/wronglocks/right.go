package wronglocks

// right are locks that differ from ours, and have all that is asked.
var right = []Variant{
	{Step: 1, Name: "rests for longer", Belief: "How long a waiter rests is a choice.",
		Edits: []Edit{inLock(`const pollInterval = 20 * time.Millisecond`, `const pollInterval = 300 * time.Millisecond`)}},
	{Step: 1, Name: "watches already", Belief: "Who is woken need not ask.",
		Edits: []Edit{inLock(`path: path, mode: zk.FlagPersistent, poll: pollInterval}`, `path: path, mode: zk.FlagPersistent, watches: true}`)}},
	{Step: 2, Name: "rests for longer", Belief: "How long a waiter rests is a choice.",
		Edits: []Edit{inLock(`const pollInterval = 20 * time.Millisecond`, `const pollInterval = 300 * time.Millisecond`)}},
	{Step: 3, Name: "waits by recursion", Belief: "Each wake-up is one call more, and no lock is waited for so long that the stack is full.",
		Edits: []Edit{inLock(`				return event.Err
			}
`, `				return event.Err
			}
			return l.wait(ctx, node)
`)}},
	{Step: 4, Name: "sorts the queue", Belief: "In a list that is sorted by the numbers, the one before mine is the predecessor.",
		Edits: []Edit{inLock(`	if !slices.Contains(names, mine) {
		return "", fmt.Errorf("own znode %s: %w", mine, zk.ErrNoNode)
	}
	own, _ := number(mine)
	before, highest := "", 0
	for _, name := range names {
		if n, ok := number(name); ok && n < own && (before == "" || n > highest) {
			before, highest = name, n
		}
	}
	return before, nil`, `	var queue []string
	for _, name := range names {
		if _, ok := number(name); ok {
			queue = append(queue, name)
		}
	}
	slices.SortFunc(queue, func(a, b string) int {
		n, _ := number(a)
		m, _ := number(b)
		return n - m
	})
	at := slices.Index(queue, mine)
	if at < 0 {
		return "", fmt.Errorf("own znode %s: %w", mine, zk.ErrNoNode)
	}
	if at == 0 {
		return "", nil
	}
	return queue[at-1], nil`)}},
	{Step: 4, Name: "waits by recursion", Belief: "Each wake-up is one call more, and it looks again.",
		Edits: []Edit{inLock(`				return event.Err
			}
`, `				return event.Err
			}
			return l.wait(ctx, node)
`)}},
	{Step: 5, Name: "the transaction that made the own znode is the token",
		Belief: "The holders' znodes are made in the order in which they are served, and no transaction number comes twice.",
		Edits: []Edit{inLock(`			mine.token = stat.Pzxid
`, `			_, own, err := conn.Get(mine.node)
			if err != nil {
				pause()
				continue
			}
			mine.token = max(own.Czxid, int64(stat.Version))
`)}},
	{Step: 5, Name: "a guid as Curator's", Belief: "A longer guid is as good.",
		Edits: []Edit{inLock(`fmt.Sprintf("%s/_c_%016x-lock-", l.dir, rand.Uint64())`,
			`fmt.Sprintf("%s/_c_%08x-%04x-4%03x-8%03x-%012x-lock-", l.dir, rand.Uint32(), rand.IntN(1<<16), rand.IntN(1<<12), rand.IntN(1<<12), rand.Int64N(1<<48))`)}},
	{Step: 5, Name: "the guid is in the data", Belief: "A znode can be told by what is in it, too.",
		Edits: []Edit{
			inLock(`node, err = create(conn, ownName, zk.FlagEphemeralSequential)`, `node, err = create(conn, l.dir+"/lock-", []byte(ownName), zk.FlagEphemeralSequential)`),
			inLock(`		if !strings.HasPrefix(node, ownName) {
			continue
		}
		_, stat, err`, `		data, stat, err`),
			inLock(`stat.EphemeralOwner == owner {`, `stat.EphemeralOwner == owner && string(data) == ownName {`),
			inLock(`func create(conn *zk.Conn, path string, mode int32) (string, error) {
	made, err := conn.Create(path, nil, mode`, `func create(conn *zk.Conn, path string, data []byte, mode int32) (string, error) {
	made, err := conn.Create(path, data, mode`),
			inLock(`create(conn, pathpkg.Dir(path), zk.FlagPersistent)`, `create(conn, pathpkg.Dir(path), nil, zk.FlagPersistent)`),
			inLock(`	return create(conn, path, mode)`, `	return create(conn, path, data, mode)`)}},
	{Step: 5, Name: "deletes what it finds, and creates again",
		Belief: "A znode that was made without an answer can be deleted, and a new one made.",
		Edits: []Edit{inLock(`			if found.node != "" {
				return found, nil
			}
`, `			if found.node != "" {
				if err := l.leave(found); znodeStays(err) {
					return place{}, err
				}
			}
`)}},
	{Step: 5, Name: "does not count its create for the lease", Belief: "The lease needs a write more, and that is all.",
		Edits: []Edit{inLock(`		node := ""
		createErr := l.s.write(func() (err error) {
			node, err = create(conn, ownName, zk.FlagEphemeralSequential)
			return err
		})
`, `		node, createErr := create(conn, ownName, zk.FlagEphemeralSequential)
`)}},
	{Step: 6, Name: "a function for each kind", Belief: "A writer waits for the last of all, and a reader for the last writer.",
		Edits: []Edit{inLock(`		bothRead := ownKind == read && k == read
		isBefore := inQueue && n < own && !bothRead`, `		waitsForIt := map[kind]bool{write: true, read: k == write}[ownKind]
		isBefore := inQueue && n < own && waitsForIt`)}},
}
