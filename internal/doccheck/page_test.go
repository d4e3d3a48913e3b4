package doccheck

import (
	"path"
	"regexp"
	"strings"
)

// A page is one Markdown file.
type page struct {
	path     string    // from the repository's root
	sections []section // each begins with a heading; the first may have none
}

// A section is a heading and what is below it, up to the next heading.
type section struct {
	level   int    // of the heading: 1 for #
	heading string // without marks
	line    int
	prose   []line // without code
	words   []line // the text between backquotes
	rows    []line // of tables, unchanged
	blocks  []block
}

type line struct {
	number int
	text   string
}

// A block is a block of code.
type block struct {
	line     int
	language string
	lines    []string
}

var (
	fence    = regexp.MustCompile("^[> ]*```(\\w*)$")
	headline = regexp.MustCompile(`^(#+) (.*)$`)
	codeSpan = regexp.MustCompile("`([^`]+)`")
	marks    = regexp.MustCompile("[`*]|\\]\\([^)]*\\)|!?\\[")
)

// parse cuts a page into its sections.
func parse(path, text string) page {
	p := page{path: path, sections: []section{{line: 1}}}
	var open *block
	for i, text := range strings.Split(text, "\n") {
		number := i + 1
		isFence := fence.FindStringSubmatch(text)
		isHeading := headline.FindStringSubmatch(text)
		s := &p.sections[len(p.sections)-1]
		switch {
		case open != nil && isFence != nil:
			s.blocks = append(s.blocks, *open)
			open = nil
		case open != nil:
			open.lines = append(open.lines, text)
		case isFence != nil:
			open = &block{line: number, language: isFence[1]}
		case isHeading != nil:
			heading := marks.ReplaceAllString(isHeading[2], "")
			p.sections = append(p.sections, section{level: len(isHeading[1]), heading: heading, line: number})
		default:
			for _, span := range codeSpan.FindAllStringSubmatch(text, -1) {
				s.words = append(s.words, line{number, span[1]})
			}
			if strings.HasPrefix(text, "|") {
				s.rows = append(s.rows, line{number, text})
			}
			s.prose = append(s.prose, line{number, codeSpan.ReplaceAllString(text, "")})
		}
	}
	return p
}

// blocks returns all blocks of code.
func (p page) blocks() (all []block) {
	for _, s := range p.sections {
		all = append(all, s.blocks...)
	}
	return all
}

var namedPlace = regexp.MustCompile(`<a id="([^"]+)"></a>`)

// anchors lists what a link to a place of the page can have after the #: its headings, and the places that it names.
func (p page) anchors() (all []string) {
	for _, s := range p.sections {
		all = append(all, Anchor(s.heading))
		for _, l := range s.prose {
			for _, place := range namedPlace.FindAllStringSubmatch(l.text, -1) {
				all = append(all, place[1])
			}
		}
	}
	return all
}

var linkTarget = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// links lists the targets of the links and pictures of a section.
func (s section) links() (all []line) {
	for _, l := range s.prose {
		for _, found := range linkTarget.FindAllStringSubmatch(l.text, -1) {
			all = append(all, line{l.number, found[1]})
		}
	}
	return all
}

var isElsewhere = regexp.MustCompile(`^[a-z]+:`)

// resolve returns the file that a link of this page leads to, and the anchor in it. For a link to
// another host, the file is the link itself.
func (p page) resolve(link string) (file, anchor string) {
	if isElsewhere.MatchString(link) {
		return link, ""
	}
	file, anchor, _ = strings.Cut(link, "#")
	if file == "" {
		return p.path, anchor
	}
	return path.Join(path.Dir(p.path), file), anchor
}

// inChinese returns the path of the Chinese page, or picture, beside an English one.
func inChinese(file string) string {
	extension := path.Ext(file)
	return strings.TrimSuffix(file, extension) + ".zh-CN" + extension
}
