package main

import (
	"fmt"

	"zklock/internal/check/lockcheck"
	"zklock/internal/check/tables"
)

// comment says in a step's lock_test.go what the locks of the folder promise and lack.
func comment(folder string) (text string) {
	for _, l := range tables.Locks {
		if l.Folder == folder {
			text += found(l, l.Subject+" has:", lockcheck.Yes)
			text += found(l, l.Subject+" lacks:", lockcheck.No)
			text += found(l, l.Subject+", where the question does not arise:", lockcheck.Void)
		}
	}
	return text + "//\n"
}

// found lists the properties with this verdict on a lock, as lines of a comment.
func found(l tables.Lock, head string, verdict lockcheck.Verdict) string {
	text := ""
	for _, r := range lockcheck.Table {
		if r.Of(l.Key) == verdict {
			text += fmt.Sprintf("//   %s %s\n", verdict, r.Property.Name)
		}
	}
	if text == "" {
		return ""
	}
	return "//\n// " + head + "\n" + text
}
