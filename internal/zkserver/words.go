package zkserver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Word sends one of ZooKeeper's four-letter words to the server at Addr, and returns the answer. To
// ask a certain member of an Ensemble, call the Peer's Word.
func (s *Server) Word(word string) (string, error) {
	const limit = 15 * time.Second // a server that has just started answers late on a busy machine
	return ask(s.Addr, word, limit)
}

func ask(addr, word string, limit time.Duration) (string, error) {
	var answer []byte
	deadline := time.Now().Add(limit)
	conn, err := net.DialTimeout("tcp", addr, limit)
	if err == nil {
		defer conn.Close()
		conn.SetDeadline(deadline)
		_, err = io.WriteString(conn, word)
	}
	if err == nil {
		answer, err = io.ReadAll(conn)
	}
	switch {
	case err != nil:
	case len(answer) == 0:
		err = errors.New("an empty answer: the server does not know this four-letter word, or is not ZooKeeper")
	case bytes.Contains(answer, []byte("is not executed because it is not in the whitelist")):
		err = errors.New("the server refuses this four-letter word: put 4lw.commands.whitelist=* in its zoo.cfg")
	default:
		return string(answer), nil
	}
	return "", fmt.Errorf("%s to %s: %w", word, addr, err)
}

// Mntr returns the server's own counters from its answer to "mntr", by their names, such as
// zk_watch_count. It leaves out those that are not whole numbers. The call itself counts as
// packets.
func (s *Server) Mntr() (map[string]int64, error) {
	text, err := s.Word("mntr")
	if err != nil {
		return nil, err
	}
	return counters(text), nil
}

// counters returns the whole numbers in an answer to mntr.
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

// Sessions returns the sessions that have not ended, each with the paths of its ephemeral znodes,
// as the server sees them. For an ensemble, it joins the answers of all members that answer.
func (s *Server) Sessions() (map[int64][]string, error) {
	limit := 5 * time.Second
	if len(s.servers) > 1 {
		limit = 500 * time.Millisecond // a member may be down
	}
	sessions := make(map[int64][]string)
	var failed []error
	for _, addr := range s.servers {
		text, err := ask(addr, "dump", limit)
		if err == nil {
			err = readDump(text, sessions)
		}
		if err != nil {
			failed = append(failed, err)
		}
	}
	if len(failed) == len(s.servers) {
		return nil, errors.Join(failed...)
	}
	return sessions, nil
}

// Watches returns the answer to "wchp": for each path of a znode, the sessions that the server
// would notify when the znode changes or is deleted. The answer does not have the watches on
// children.
func (s *Server) Watches() (map[string][]int64, error) {
	text, err := s.Word("wchp")
	if err != nil {
		return nil, err
	}
	return readWatches(text)
}

// readWatches reads an answer to "wchp". Below each path, it has the sessions that watch the path:
//
//	/lock/lock-0000000000
//		0x10000191fa70000
//		0x10000191fa70001
func readWatches(text string) (map[string][]int64, error) {
	watches := map[string][]int64{}
	path := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		session, isSession := strings.CutPrefix(line, "\t0x")
		if !isSession {
			path = line
			continue
		}
		id, err := strconv.ParseUint(session, 16, 64)
		if err != nil {
			return nil, fmt.Errorf("wchp: %q is no session: %w", line, err)
		}
		watches[path] = append(watches[path], int64(id))
	}
	return watches, nil
}

// begins matches the lines of a dump that matter. Each begins with a session, which the server
// prints unsigned, or with a path.
var begins = regexp.MustCompile(`(?m)^[ \t]*(?:0x([0-9a-f]+)|(/.*))`)

// readDump adds the sessions and paths of an answer to "dump", which has three parts:
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
func readDump(text string, sessions map[int64][]string) error {
	text, _, _ = strings.Cut(text, "Connections dump:")
	if !strings.Contains(text, "ephemeral nodes dump:") {
		return fmt.Errorf("no list of ephemerals in the dump %q", text)
	}
	var owner int64
	for _, line := range begins.FindAllStringSubmatch(text, -1) {
		id, err := strconv.ParseUint(line[1], 16, 64)
		if err == nil {
			owner = int64(id)
		}
		paths, known := sessions[owner]
		path := line[2]
		isNew := path != "" && !slices.Contains(paths, path)
		switch {
		case err == nil:
			sessions[owner] = paths // it may have none
		case known && isNew:
			sessions[owner] = append(paths, path)
		}
	}
	return nil
}
