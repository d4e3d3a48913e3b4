package doccheck

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var shells = []string{"", "sh", "bash", "console"}

// commands lists what a page tells a reader to type.
func (p page) commands() (all []line) {
	var lines []line
	for _, s := range p.sections {
		lines = append(lines, s.words...)
		for _, b := range s.blocks {
			for i, text := range b.lines {
				if slices.Contains(shells, b.language) {
					lines = append(lines, line{b.line + 1 + i, withoutComment(text)})
				}
			}
		}
	}
	for _, l := range lines {
		text := setting.ReplaceAllString(strings.TrimPrefix(l.text, "$ "), "")
		if words := strings.Fields(text); len(words) > 1 {
			all = append(all, line{l.number, strings.Join(words, " ")})
		}
	}
	return all
}

var setting = regexp.MustCompile(`^([A-Z_]+=\S* )+`) // a variable before the command

func TestCommandsExist(t *testing.T) {
	r := read(t)
	for _, p := range r.pages {
		for _, c := range p.commands() {
			words := strings.Fields(c.text)
			problem := ""
			switch words[0] {
			case "make":
				problem = r.lacksOfMake(words[1:])
			case "go":
				problem = r.lacksOfGo(words[1:])
			case "diff":
				problem = lacksOfDiff(words[1:])
			}
			if problem != "" {
				t.Errorf("%s:%d: %s: %s", p.path, c.number, c.text, problem)
			}
		}
	}
}

// lacksOfMake says which target or variable of a make command does not exist, or returns "".
func (r repository) lacksOfMake(words []string) string {
	for _, word := range words {
		name, _, isVariable := strings.Cut(word, "=")
		switch {
		case isVariable && !r.looksAt(name):
			return "nobody looks at " + name
		case !isVariable && !strings.Contains("\n"+r.makefile, "\n"+name+":"):
			return "the Makefile has no " + name
		}
	}
	return ""
}

// looksAt reports whether the Makefile or a Go file uses a variable.
func (r repository) looksAt(variable string) bool {
	if strings.Contains(r.makefile, variable) {
		return true
	}
	for _, text := range r.code {
		if strings.Contains(text, `"`+variable+`"`) {
			return true
		}
	}
	return false
}

// lacksOfGo says which package, or which test that -run names, does not exist, or returns "".
func (r repository) lacksOfGo(words []string) string {
	var folders []string
	pattern, in := "", "" // the folder that -C names
	if len(words) > 2 && words[0] == "-C" {
		in = words[1]
		words = words[2:]
	}
	for i, word := range words {
		folder, isFolder := strings.CutPrefix(word, "./")
		if isHere := i > 0 && word == "."; isHere {
			folder, isFolder = "", true
		}
		switch {
		case i > 0 && slices.Contains([]string{"-run", "-bench"}, words[i-1]):
			pattern, _, _ = strings.Cut(strings.Trim(word, `'"`), "/")
		case isFolder && strings.HasPrefix(folder, "yours"):
			return "" // the learner's own
		case isFolder:
			folder, _, _ = strings.Cut(folder, "...")
			found, _ := filepath.Glob(filepath.Join(root, in, folder))
			if len(found) == 0 {
				return "there is no folder " + word
			}
			for _, path := range found {
				name, _ := filepath.Rel(root, path)
				folders = append(folders, name+"/")
			}
		}
	}
	if pattern == "" {
		return ""
	}
	for _, folder := range folders {
		if r.hasTest(folder, pattern) {
			return ""
		}
	}
	return "no test there is called " + pattern
}

func lacksOfDiff(words []string) string {
	if slices.ContainsFunc(words, filepath.IsAbs) {
		return "" // on a stick
	}
	for _, word := range words {
		if !strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "yours/") && !exists(word) {
			return "there is no " + word
		}
	}
	return ""
}

var comment = regexp.MustCompile(` +# .*`)

func withoutComment(command string) string { return comment.ReplaceAllString(command, "") }
