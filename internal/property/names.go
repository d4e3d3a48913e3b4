package property

import "slices"

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
