package actor

import (
	"fmt"

	"github.com/go-zookeeper/zk"
)

// Znodes asks the server for the znodes of a lock: the one at path or, if not isZnode, those in that
// directory. It returns the session of each znode, or 0 for a znode in a directory that isKnown, about
// which it does not ask.
func Znodes(server *zk.Conn, path string, isZnode bool, isKnown func(path string) bool) (map[string]int64, error) {
	paths := []string{path}
	if !isZnode {
		names, _, err := server.Children(path)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", path, err)
		}
		paths = nil
		for _, name := range names {
			paths = append(paths, path+"/"+name)
		}
	}
	sessions := map[string]int64{}
	for _, path := range paths {
		if !isZnode && isKnown(path) {
			sessions[path] = 0
			continue
		}
		there, stat, err := server.Exists(path)
		if err != nil {
			return nil, fmt.Errorf("look at %s: %w", path, err)
		}
		if there {
			sessions[path] = stat.EphemeralOwner
		}
	}
	return sessions, nil
}
