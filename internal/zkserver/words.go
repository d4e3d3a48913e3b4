package zkserver

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

var errNotWhitelisted = errors.New("the server refuses this word: put 4lw.commands.whitelist=* into its zoo.cfg")

// Word sends one of ZooKeeper's four-letter words to the server at Addr and
// returns the answer. For an Ensemble, ask the Peer that is meant.
func (s *Server) Word(word string) (string, error) {
	return ask(s.Addr, word, 5*time.Second)
}

func ask(addr, word string, limit time.Duration) (answer string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s to %s: %w", word, addr, err)
		}
	}()
	deadline := time.Now().Add(limit)
	conn, err := net.DialTimeout("tcp", addr, limit)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	conn.SetDeadline(deadline)
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	text, err := io.ReadAll(conn)
	switch {
	case err != nil:
		return "", err
	case len(text) == 0:
		return "", errors.New("an empty answer: the server does not know this word, or is no ZooKeeper")
	case strings.Contains(string(text), "is not executed because it is not in the whitelist"):
		return "", errNotWhitelisted
	}
	return string(text), nil
}

// Mntr returns the server's own counters, as "mntr" tells them: those that
// are whole numbers, under their own names (zk_watch_count, ...). The call
// itself counts as packets.
func (s *Server) Mntr() (map[string]int64, error) {
	text, err := s.Word("mntr")
	if err != nil {
		return nil, err
	}
	counters := counters(text)
	if len(counters) == 0 {
		return nil, fmt.Errorf("mntr to %s: no counters in %q", s.Addr, text)
	}
	return counters, nil
}

// counters reads the whole numbers of an answer to mntr.
func counters(text string) map[string]int64 {
	counters := make(map[string]int64)
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			counters[key] = n
		}
	}
	return counters
}

// Sessions returns the sessions that live, as the server sees it; of an
// ensemble, as one or another of the members sees it that answer.
func (s *Server) Sessions() (map[int64]bool, error) {
	sessions, _, err := s.dump()
	return sessions, err
}

// Ephemerals returns the paths of all ephemeral znodes by the session that
// owns them.
func (s *Server) Ephemerals() (map[int64][]string, error) {
	_, ephemerals, err := s.dump()
	return ephemerals, err
}

func (s *Server) dump() (map[int64]bool, map[int64][]string, error) {
	if len(s.servers) < 2 {
		return dump(s.Addr, 5*time.Second)
	}
	sessions, ephemerals := make(map[int64]bool), make(map[int64][]string)
	answered := false
	var failed error
	for _, addr := range s.servers {
		someSessions, someEphemerals, err := dump(addr, 500*time.Millisecond)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		answered = true
		maps.Copy(sessions, someSessions)
		for id, paths := range someEphemerals {
			for _, path := range paths {
				if !slices.Contains(ephemerals[id], path) {
					ephemerals[id] = append(ephemerals[id], path)
				}
			}
		}
	}
	if !answered {
		return nil, nil, failed
	}
	return sessions, ephemerals, nil
}

func dump(addr string, limit time.Duration) (map[int64]bool, map[int64][]string, error) {
	text, err := ask(addr, "dump", limit)
	if err != nil {
		return nil, nil, err
	}
	sessions, ephemerals, err := parseDump(text)
	if err != nil {
		return nil, nil, fmt.Errorf("dump to %s: %w", addr, err)
	}
	return sessions, ephemerals, nil
}

// parseDump reads the answer to "dump". It has three parts, each with a
// title, and only the lines that begin with a session or a path matter:
//
//	SessionTracker dump:
//	Session Sets (1)/(1):
//	1 expire at Sat Nov 21 02:14:51 UTC 2026:
//		0x10000191fa70000
//	ephemeral nodes dump:
//	Sessions with Ephemerals (1):
//	0x10000191fa70000:
//		/lock/lock-0000000000
//	Connections dump:
//	...
func parseDump(text string) (map[int64]bool, map[int64][]string, error) {
	trackers, rest, found := strings.Cut(text, "ephemeral nodes dump:")
	if !found {
		return nil, nil, fmt.Errorf("no list of ephemerals in %q", text)
	}
	sessions := make(map[int64]bool)
	for line := range strings.Lines(trackers) {
		if id, ok := sessionID(line); ok {
			sessions[id] = true
		}
	}
	owned, _, _ := strings.Cut(rest, "Connections dump:")
	ephemerals := make(map[int64][]string)
	var owner int64
	for line := range strings.Lines(owned) {
		if id, ok := sessionID(line); ok {
			owner = id
		} else if path := strings.TrimSpace(line); strings.HasPrefix(path, "/") {
			ephemerals[owner] = append(ephemerals[owner], path)
		}
	}
	return sessions, ephemerals, nil
}

// sessionID reads the session that a line of a dump begins with. The server
// prints it unsigned.
func sessionID(line string) (int64, bool) {
	digits, found := strings.CutPrefix(strings.TrimSpace(line), "0x")
	if !found {
		return 0, false
	}
	if end := strings.IndexAny(digits, ":\t "); end >= 0 {
		digits = digits[:end]
	}
	id, err := strconv.ParseUint(digits, 16, 64)
	return int64(id), err == nil
}
