package book

import (
	"fmt"
	"html/template"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"zklock/internal/upkeep/words"
)

// A codePage shows a step's code, with the lines marked that the step before does not
// have, and those that have gone since.
type codePage struct {
	step    string // as in step03
	folder  string // as in step03_children_watch
	before  string // the folder of the step before, or ""
	edition *edition
	files   []codeFile
	chapter rendered
}

type codeFile struct {
	name  string
	lines []codedLine // with a mark in front: a blank, + or -
	same  bool        // the step before has the same
	fresh bool        // the step before has no such file
}

type codedLine struct {
	mark byte
	text string
}

func (c *codePage) name() string { return c.step + "-code" }

func (c *codePage) title() string {
	return fmt.Sprintf(c.edition.say("Step %s: the code"), strings.TrimPrefix(c.step, "step0"))
}

var codeFolder = regexp.MustCompile(`^step\d\d_\w+$`)

// compare makes the pages of code: of each step its lock first, then its other files,
// and those of its tests that a page leads to.
func (e *edition) compare() error {
	folders := map[string][]string{}
	linked := e.linked()
	for source := range e.sources {
		folder, name := path.Split(source)
		folder = path.Clean(folder)
		isUnlinkedTest := isTest(name) && !slices.Contains(linked, source)
		isCode := path.Ext(name) == ".go" && !isUnlinkedTest
		if codeFolder.MatchString(folder) && isCode {
			folders[folder] = append(folders[folder], name)
		}
	}
	before := ""
	for _, p := range e.pages {
		if !stepName.MatchString(p.name) {
			continue
		}
		folder := ""
		for f := range folders {
			if strings.HasPrefix(f, p.name) {
				folder = f
			}
		}
		names := folders[folder]
		slices.SortFunc(names, func(a, b string) int { return strings.Compare(rank(a), rank(b)) })
		c := &codePage{step: p.name, folder: folder, before: before, edition: e}
		for _, name := range names {
			file, err := c.file(name)
			if err != nil {
				return err
			}
			c.files = append(c.files, file)
		}
		e.codes = append(e.codes, c)
		before = folder
	}
	return nil
}

func isTest(name string) bool { return strings.HasSuffix(name, "_test.go") }

// rank is by what the files of a step are sorted.
func rank(name string) string {
	switch {
	case name == "lock.go":
		return "1"
	case isTest(name):
		return "3" + name
	}
	return "2" + name
}

// linked lists the files that the edition's pages lead to.
func (e *edition) linked() (all []string) {
	for _, p := range e.pages {
		for _, link := range p.Of("Link") {
			all = append(all, path.Join(path.Dir(p.Path), link.Text))
		}
	}
	return all
}

// file compares a file with that of the step before. A test is not compared.
func (c *codePage) file(name string) (codeFile, error) {
	own := c.edition.sources[c.folder+"/"+name]
	old, had := c.edition.sources[c.before+"/"+name]
	f := codeFile{name: name, same: withoutPackage(own) == withoutPackage(old)}
	hasChanged := had && !f.same
	if !hasChanged || isTest(name) {
		for line := range strings.Lines(own) {
			f.lines = append(f.lines, codedLine{' ', line})
		}
		isNew := !had && c.before != "" // in the first step all are
		f.fresh = isNew && !isTest(name)
		return f, nil
	}
	var err error
	f.lines, err = compared(old, own)
	return f, err
}

var packageClause = regexp.MustCompile(`(?m)^package .*$`)

func withoutPackage(code string) string { return packageClause.ReplaceAllString(code, "") }

// compared are the lines of both texts, as diff compares them.
func compared(old, own string) (lines []codedLine, err error) {
	folder, err := os.MkdirTemp("", "zklock-book-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	for name, text := range map[string]string{"old": old, "own": own} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	const all = "1000000" // lines of what is around a change
	diff := exec.Command("diff", "-U", all, "old", "own")
	diff.Dir = folder
	printed, err := diff.Output()
	if diff.ProcessState == nil || diff.ProcessState.ExitCode() != 1 {
		return nil, words.Errorf("diff -u of two texts that differ: %w", err)
	}
	_, body, _ := strings.Cut(string(printed), "@@\n")
	for line := range strings.Lines(body) {
		if line[0] != '\\' { // "No newline at end of file"
			lines = append(lines, codedLine{line[0], line[1:]})
		}
	}
	return lines, nil
}

// code is where the book shows a file of a step's code, or "".
func (e *edition) code(source string) string {
	folder, name := path.Split(source)
	for _, c := range e.codes {
		if c.folder+"/" == folder && slices.ContainsFunc(c.files, func(f codeFile) bool { return f.name == name }) {
			return c.name() + ".html#" + name
		}
	}
	return ""
}

// render is the page's HTML.
func (c *codePage) render() string {
	var out strings.Builder
	say := func(text string) string { return template.HTMLEscapeString(c.edition.say(text)) }
	fmt.Fprintf(&out, "<h1>%s</h1>\n", template.HTMLEscapeString(c.title()))
	fmt.Fprintf(&out, "<p><a href=\"%s.html\">%s</a></p>\n", c.step, say("Back to the chapter"))
	if c.before != "" {
		fmt.Fprintf(&out, "<p>%s</p>\n", say("Lines with + are new since the step before. Lines with − have gone."))
	}
	out.WriteString("<ul class=\"files\">\n")
	for _, f := range c.files {
		fmt.Fprintf(&out, "<li><a href=\"#%s\"><code>%s</code></a> %s</li>\n", f.name, f.name, say(f.said()))
	}
	out.WriteString("</ul>\n")
	c.outputs(&out, say)
	for _, f := range c.files {
		fmt.Fprintf(&out, "<h2 id=\"%s\"><code>%s</code></h2>\n", f.name, f.name)
		f.render(&out, say)
	}
	return out.String()
}

// outputs writes what the step's tests print, as its chapter has it. It answers what the
// chapter asks, and so it is folded until all that is answered.
func (c *codePage) outputs(out *strings.Builder, say func(string) string) {
	if len(c.chapter.printed) == 0 {
		return
	}
	var keys []string
	for i := range c.chapter.asked {
		keys = append(keys, fmt.Sprintf("%s-%d", c.step, i+1))
	}
	fmt.Fprintf(out, "<details class=\"outputs\" data-answered=\"%s\"><summary>%s</summary>\n<p class=\"way\">%s</p>\n",
		strings.Join(keys, " "), say("What the tests print"), say("It answers the chapter's questions."))
	for i, printed := range c.chapter.printed {
		if i == 0 || printed.section.ID != c.chapter.printed[i-1].section.ID {
			fmt.Fprintf(
				out,
				"<p><a href=\"%s.html#%s\">%s</a></p>\n",
				c.step,
				printed.section.ID,
				template.HTMLEscapeString(printed.section.Title),
			)
		}
		fmt.Fprintf(
			out,
			"<pre tabindex=\"0\" class=\"printed\"><code>%s</code></pre>\n",
			template.HTMLEscapeString(printed.text),
		)
	}
	out.WriteString("</details>\n")
}

// said is what there is to say of a file as a whole.
func (f codeFile) said() string {
	switch {
	case f.same:
		return "as in the step before"
	case f.fresh:
		return "a new file"
	}
	return ""
}

// render writes the lines. Each place with changes leads to the next one.
func (f codeFile) render(out *strings.Builder, say func(string) string) {
	places := 0
	for i := range f.lines {
		if f.begins(i) {
			places++
		}
	}
	if places > 0 {
		fmt.Fprintf(out, "<p><a href=\"#%s-1\">%s</a></p>\n", f.name, say("To the first change"))
	}
	fmt.Fprint(out, "<pre class=\"listing\" tabindex=\"0\"><code>")
	place := 0
	for i, line := range f.lines {
		anchor := ""
		if f.begins(i) {
			place++
			anchor = fmt.Sprintf("<span id=\"%s-%d\"></span>", f.name, place)
			if place < places {
				anchor += fmt.Sprintf("<a class=\"on\" href=\"#%s-%d\">%s</a>", f.name, place+1, say("next change"))
			}
		}
		text := template.HTMLEscapeString(line.text)
		switch line.mark {
		case '+':
			fmt.Fprintf(out, "%s<ins>+%s</ins>", anchor, text)
		case '-':
			fmt.Fprintf(out, "%s<del>−%s</del>", anchor, text)
		default:
			fmt.Fprintf(out, " %s", text)
		}
	}
	fmt.Fprint(out, "</code></pre>\n")
}

// begins tells whether changes begin in a line.
func (f codeFile) begins(i int) bool {
	if f.lines[i].mark == ' ' {
		return false
	}
	return i == 0 || f.lines[i-1].mark == ' '
}
