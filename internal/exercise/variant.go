package exercise

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"zklock/internal/lang"
	"zklock/internal/property"
)

// A Variant is the lock of a step with a few lines replaced: a wrong lock, or a right one that differs
// from ours. It is compiled by an overlay, and nothing is written into the repository.
type Variant struct {
	Name string
	Of   string // the folder of the lock; "": the exercise's own

	By      *property.Property   // the check stops there; nil: the check accepts the lock
	Alone   bool                 // no other property refuses the lock
	Besides []*property.Property // but these may refuse it, too

	// Hunks are what is replaced, as in a diff without its heads: a line that begins with - goes, one
	// that begins with + comes, and one that begins with a blank stays. A line … stands between two
	// hunks. Each is found once in the lock. Indentation does not count, and imports are no part of a
	// hunk: a changed file imports what it uses.
	Hunks string
}

// right is a right lock that differs from ours.
func right(name, hunks string) Variant { return Variant{Name: name, Hunks: hunks} }

// wrong is a wrong lock: the check stops at a property.
func wrong(name string, by *property.Property, hunks string) Variant {
	return Variant{Name: name, By: by, Hunks: hunks}
}

// alone is a wrong lock that one property refuses, and no other, but perhaps those besides.
func alone(name string, by *property.Property, hunks string, besides ...*property.Property) Variant {
	return Variant{Name: name, By: by, Alone: true, Hunks: hunks, Besides: besides}
}

// of is a variant of another step's lock.
func of(other Exercise, v Variant) Variant {
	v.Of = other.Home
	return v
}

// The values of By for a lock that is refused before the first property, and for one whose mistake is
// first seen in one story or in another, depending on the machine's speed.
var (
	atOnce    = &property.Property{Name: lang.Text{EN: canBeUsed}}
	somewhere = &property.Property{Name: lang.Text{EN: anywhere}}
)

// lockFiles are the files of a step's lock.
var lockFiles = []string{"lock.go", "hold.go", "session.go", "errors.go"}

// files returns the files of a variant's lock, by name. root is the folder of the repository.
func (v Variant) files(root string) (map[string]string, error) {
	files := map[string]string{}
	for _, name := range lockFiles {
		text, err := os.ReadFile(filepath.Join(root, v.Of, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		files[name] = string(text)
	}
	changed := map[string]bool{}
	var hunks []string
	if v.Hunks != "" {
		hunks = strings.Split(v.Hunks, "\n…\n")
	}
	for _, hunk := range hunks {
		old, with := sides(hunk)
		found := 0
		for name, text := range files {
			replaced, times := replaceLines(text, old, with)
			found += times
			if times > 0 {
				files[name], changed[name] = replaced, true
			}
		}
		if found != 1 {
			return nil, fmt.Errorf("%q: %s should have these lines once, and has them %d times:\n%s",
				v.Name, v.Of, found, strings.Join(old, "\n"))
		}
	}
	for name := range changed {
		text, err := withImports(files[name])
		if err != nil {
			return nil, fmt.Errorf("%q: %s: %w", v.Name, name, err)
		}
		files[name] = text
	}
	return files, nil
}

// sides returns the lines before a hunk is applied, and those after it.
func sides(hunk string) (old, with []string) {
	for line := range strings.SplitSeq(strings.Trim(hunk, "\n"), "\n") {
		mark, rest := " ", ""
		if line != "" {
			mark, rest = line[:1], line[1:]
		}
		if mark != "+" {
			old = append(old, strings.TrimSpace(rest))
		}
		if mark != "-" {
			with = append(with, rest)
		}
	}
	return old, with
}

// replaceLines replaces lines of a text, compared without their indentation. It returns how often they
// were there.
func replaceLines(text string, old, with []string) (replaced string, times int) {
	lines := strings.Split(text, "\n")
	plain := make([]string, len(lines))
	for i, line := range lines {
		plain[i] = strings.TrimSpace(line)
	}
	var all []string
	for at := 0; at < len(lines); at++ {
		end := min(at+len(old), len(lines))
		if !slices.Equal(plain[at:end], old) {
			all = append(all, lines[at])
			continue
		}
		all = append(all, with...)
		at = end - 1
		times++
	}
	return strings.Join(all, "\n"), times
}

// importable are the packages that a variant can use, by their names in its code.
var importable = map[string]string{
	"cmp": "cmp", "context": "context", "errors": "errors", "fmt": "fmt", "rand": "math/rand/v2", "net": "net",
	"pathpkg": "path", "regexp": "regexp", "slices": "slices", "strconv": "strconv", "strings": "strings", "sync": "sync",
	"atomic": "sync/atomic", "time": "time", "zk": "github.com/go-zookeeper/zk",
}

// withImports gives a file the imports that its code uses.
func withImports(text string) (string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
	if err != nil {
		return "", err
	}
	used := map[string]bool{}
	ast.Inspect(file, func(node ast.Node) bool {
		if selector, ok := node.(*ast.SelectorExpr); ok {
			if name, ok := selector.X.(*ast.Ident); ok {
				used[name.Name] = true
			}
		}
		return true
	})
	var imports strings.Builder
	for name, path := range importable {
		if used[name] {
			fmt.Fprintf(&imports, "\t%s %q\n", name, path)
		}
	}
	before, rest, _ := strings.Cut(text, "import (\n")
	_, after, _ := strings.Cut(rest, "\n)\n")
	return before + "import (\n" + imports.String() + ")\n" + after, nil
}

// overlay writes, below dir, an overlay for the go command: the file that has the name of each key has
// the text of its value. A file with an empty text does not exist.
func overlay(dir string, texts map[string]string) (list string, err error) {
	replace := map[string]string{}
	for file, text := range texts {
		replace[file] = ""
		if text == "" {
			continue
		}
		replace[file] = filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		if err := os.WriteFile(replace[file], []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	list = filepath.Join(dir, "overlay.json")
	return list, errors.Join(err, os.WriteFile(list, text, 0o644))
}
