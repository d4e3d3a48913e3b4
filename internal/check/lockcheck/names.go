package lockcheck

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"zklock/internal/server/zkserver"
)

// FuzzFirst puts a znode with a number among names of anybody's. It tests how a
// step reads a name's number, and whether it finds out who is the first. Whoever's own
// number can be somebody else's as well is told so.
func FuzzFirst(
	f *testing.F,
	number func(name string) (n int, ok bool),
	isFirst func(names []string, mine string) (bool, error),
) {
	f.Add("", int32(0))
	f.Add("lock-0000000001/lock-0000000003/lock-0000000002/lock-0000000005/foreign", int32(4))
	f.Add("lock--2147483648/lock-2147483647/lock-99999999999999999999", int32(zkserver.LastNumber-1))
	f.Add("lock-0000000001/lock-2147483646", int32(zkserver.LastNumber))
	f.Add("lock-0000000001", int32(-1))
	f.Add("lock-/lock-x/lock-+1/_c_0-lock-0000000000/lock-٣", int32(7))
	ofTheQueue := regexp.MustCompile(`^lock-[+-]?[0-9]{1,18}$`)
	f.Fuzz(func(t *testing.T, names string, own int32) {
		mine, others := fmt.Sprintf("lock-%010d", own), strings.Split(names, "/")
		if n, ok := number(mine); n != int(own) || !ok {
			t.Errorf("the number of %s is %d, %v", mine, n, ok)
		}
		if own < 0 || own == zkserver.LastNumber {
			is, err := isFirst(append(others, mine), mine)
			wasTold := err != nil && !errors.Is(err, zk.ErrNoNode)
			if is || !wasTold {
				t.Errorf("%s, which others can have as well, is the first of %q: %v, %v", mine, others, is, err)
			}
			return
		}
		first := true
		for _, name := range others {
			n, ok := number(name)
			if ok != ofTheQueue.MatchString(name) && len(name) < len("lock-+")+18 {
				t.Errorf("the number of %q is %d, %v", name, n, ok)
			}
			isBefore := ok && n < int(own)
			first = first && !isBefore
		}
		is, err := isFirst(others, mine)
		missesMine := errors.Is(err, zk.ErrNoNode) && !is
		if !missesMine && !slices.Contains(others, mine) {
			t.Errorf("%s is not among %q: %v, %v", mine, others, is, err)
		}
		for _, list := range [][]string{append(others, mine), append([]string{mine}, others...)} {
			if is, err := isFirst(list, mine); is != first || err != nil {
				t.Errorf("%s is the first of %q: %v, %v", mine, list, is, err)
			}
		}
	})
}

// IsBefore tells whether before is the right one of the names to watch: its
// number is the greatest below own. There is none if it is "".
func IsBefore(number func(name string) (n int, ok bool), before string, names []string, own int) bool {
	highest, there := number(before)
	for _, name := range names {
		n, ok := number(name)
		isBeforeOwn := ok && n < own
		isAbove := !there || n > highest
		if isBeforeOwn && isAbove {
			return false
		}
	}
	if before == "" {
		return true
	}
	isBeforeOwn := there && highest < own
	return isBeforeOwn && slices.Contains(names, before)
}
