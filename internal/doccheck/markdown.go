// Package doccheck holds the repository's Markdown against the repository: the
// links lead somewhere, the Go code stands in the files, the commands exist,
// what is quoted from a run is what a test says, and what docs/ claims about
// ZooKeeper is seen on a real server.
package doccheck

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
)

// A page is one Markdown file.
type page struct {
	path   string // from the repository's root, with slashes
	blocks []block
	prose  []line // all lines outside of code blocks
}

// A block is a fenced code block.
type block struct {
	language string
	first    int // the number of its first line
	lines    []string
}

func (b block) text() string { return strings.Join(b.lines, "\n") }

// A line is a line of text, with its number.
type line struct {
	number int
	text   string
}

// readPages reads all Markdown below root. Folders that git does not keep, and
// those with a dot in front, hold no pages.
func readPages(root string) (pages []page, err error) {
	err = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "out") {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		p, err := parsePage(filepath.ToSlash(relative), string(text))
		pages = append(pages, p)
		return err
	})
	return pages, err
}

// parsePage takes the code blocks out of the text. A block that is quoted (> in
// front) or indented in a list is one, too.
func parsePage(path, text string) (page, error) {
	p := page{path: path}
	fence, indent := "", 0
	for i, l := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		unquoted := strings.TrimPrefix(strings.TrimPrefix(l, ">"), " ")
		if !strings.HasPrefix(l, ">") {
			unquoted = l
		}
		trimmed := strings.TrimLeft(unquoted, " ")
		marks := len(trimmed) - len(strings.TrimLeft(trimmed, "`"))
		switch {
		case fence == "" && marks >= 3:
			fence, indent = trimmed[:marks], len(unquoted)-len(trimmed)
			p.blocks = append(p.blocks, block{language: strings.TrimSpace(trimmed[marks:]), first: i + 2})
		case fence == "":
			p.prose = append(p.prose, line{i + 1, l})
		case marks >= len(fence) && strings.TrimSpace(trimmed[marks:]) == "":
			fence = ""
		default:
			b := &p.blocks[len(p.blocks)-1]
			cut := min(indent, len(unquoted)-len(trimmed))
			b.lines = append(b.lines, unquoted[cut:])
		}
	}
	if fence != "" {
		return p, fmt.Errorf("%s: a code block is not closed", path)
	}
	return p, nil
}

// codeSpan is `code` in a line of prose.
var codeSpan = regexp.MustCompile("``(.+?)``|`([^`]+)`")

// spans lists the code in a line of prose.
func spans(text string) (all []string) {
	for _, m := range codeSpan.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1]+m[2])
	}
	return all
}

// A link is where a line of prose leads to.
type link struct {
	line   int
	target string
}

var (
	inlineLink    = regexp.MustCompile(`\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)`)
	referenceLink = regexp.MustCompile(`^\s*\[[^\]]+\]:\s+(\S+)`)
	htmlLink      = regexp.MustCompile(`<(?:a|img|source)\s[^>]*?(?:href|src|srcset)="([^"]+)"`)
)

// links lists where a page leads to.
func (p page) links() (all []link) {
	for _, l := range p.prose {
		text := codeSpan.ReplaceAllString(l.text, "")
		for _, pattern := range []*regexp.Regexp{inlineLink, referenceLink, htmlLink} {
			for _, m := range pattern.FindAllStringSubmatch(text, -1) {
				all = append(all, link{l.number, m[1]})
			}
		}
	}
	return all
}

var (
	heading  = regexp.MustCompile(`^#{1,6}\s+(.+?)\s*#*$`)
	htmlID   = regexp.MustCompile(`<[a-z]+\s[^>]*?(?:id|name)="([^"]+)"`)
	linkText = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
)

// anchors lists what a link to this page may have behind a #.
func (p page) anchors() map[string]bool {
	found := map[string]bool{}
	for _, l := range p.prose {
		for _, m := range htmlID.FindAllStringSubmatch(l.text, -1) {
			found[m[1]] = true
		}
		m := heading.FindStringSubmatch(l.text)
		if m == nil {
			continue
		}
		name := slug(m[1])
		for n, first := 1, name; found[name]; n++ {
			name = fmt.Sprintf("%s-%d", first, n)
		}
		found[name] = true
	}
	return found
}

// slug is the anchor of a heading, as the usual hosts of Markdown make it.
func slug(heading string) string {
	text := linkText.ReplaceAllString(heading, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}
