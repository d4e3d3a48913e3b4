//go:build !unix

package tour

// mostFiles reports that the limit is not known: it is known only on Unix.
func mostFiles() (most int, known bool) { return 0, false }
