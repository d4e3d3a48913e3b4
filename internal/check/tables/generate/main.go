// Command generate writes what the pages and the steps' lock_test.go list of locks,
// mistakes and properties. Each list stands between two markers, and is made from a table:
// tables.Locks, tables.Mistakes, property.Table.
//
//	go generate ./...                                   writes the lists
//	go run ./internal/check/tables/generate -check .    says which of them differ
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	check := flag.Bool("check", false, "write nothing; fail if a list differs from its table")
	flag.Parse()
	root := "../../.." // where go generate runs this is the folder of package tables
	if flag.NArg() > 0 {
		root = flag.Arg(0)
	}
	if err := generate(root, *check); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// generate fills all lists below root, or finds those that differ from their table.
func generate(root string, check bool) error {
	var problems []error
	for _, l := range lists() {
		problems = append(problems, l.fill(root, check))
	}
	return errors.Join(problems...)
}

// A list stands in a file, between two markers.
type list struct {
	file  string // from the root of the repository
	table string // what it is made from, as the marker says
	text  string
}

// markers are the lines around the list. In Markdown they are comments of HTML, which no
// reader sees.
func (l list) markers() (begin, end string) {
	made := "made from the table of " + l.table + ": go generate ./..."
	if filepath.Ext(l.file) == ".go" {
		return "// " + made + "\n", "// end of what was made\n"
	}
	return "<!-- " + made + " -->\n", "<!-- end -->\n"
}

// fill writes the list into its file. If it is only to check, it says whether the list differs.
func (l list) fill(root string, check bool) error {
	path := filepath.Join(root, l.file)
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	begin, end := l.markers()
	before, rest, hasBegin := strings.Cut(string(old), begin)
	_, after, hasEnd := strings.Cut(rest, end)
	if !hasBegin || !hasEnd {
		return fmt.Errorf("%s: there are no two lines\n%s%s", l.file, begin, end)
	}
	filled := before + begin + l.text + end + after
	switch {
	case filled == string(old):
		return nil
	case check:
		return fmt.Errorf("%s: the list differs from the table of %s: go generate ./... writes it", l.file, l.table)
	}
	return os.WriteFile(path, []byte(filled), 0o644)
}
