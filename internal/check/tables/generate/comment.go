package main

import (
	"fmt"

	"zklock/internal/check/tables"
	"zklock/internal/property"
)

// comment says in a step's lock_test.go what the locks of the folder promise and lack.
func comment(folder string) (text string) {
	for _, l := range tables.Locks {
		if l.Folder == folder {
			text += found(l, l.Subject+" has:", property.Yes)
			text += found(l, l.Subject+" lacks:", property.No)
			text += found(l, l.Subject+", where the question does not arise:", property.Void)
		}
	}
	return text + "//\n"
}

// found lists the properties with this verdict on a lock, as lines of a comment.
func found(l tables.Lock, head string, verdict property.Verdict) string {
	text := ""
	for _, r := range property.Table {
		if r.Of(l.Key) == verdict {
			text += fmt.Sprintf("//   %s %s\n", verdict, r.Property.Name)
		}
	}
	if text == "" {
		return ""
	}
	return "//\n// " + head + "\n" + text
}
