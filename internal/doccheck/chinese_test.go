package doccheck

import (
	"regexp"
	"strings"
	"testing"
)

var (
	endsInMark     = regexp.MustCompile(`[。，：；！？）”]$`)
	beginsWithWord = regexp.MustCompile(`^[\p{L}\p{N}]`)
)

// Markdown does not end bold text whose last character is a Chinese mark if a word follows without
// a space.
func TestASpaceFollowsBoldTextThatEndsInAMark(t *testing.T) {
	for _, p := range read(t).pages {
		for _, s := range p.sections {
			for _, l := range s.prose {
				parts := strings.Split(l.text, "**") // each second one is bold
				for i := 1; i+1 < len(parts); i += 2 {
					if endsInMark.MatchString(parts[i]) && beginsWithWord.MatchString(parts[i+1]) {
						t.Errorf("%s:%d: a space is missing behind **%s**", p.path, l.number, parts[i])
					}
				}
			}
		}
	}
}

var (
	quotation   = regexp.MustCompile(`（[^）]*）|“[^”]*”|"[^"]*"|<[^>]*>|\*[^*]*\*`) // the last: italics
	englishWord = regexp.MustCompile(`(?i)\b(?:why|what|which|does|is|are|and|not)\b`)
)

// Outside a table or a quotation, a Chinese page has no sentence that is still in English.
func TestNoSentenceOfAChinesePageIsInEnglish(t *testing.T) {
	for _, p := range read(t).pages {
		if isEnglish(p.path) {
			continue
		}
		for _, s := range p.sections {
			for _, l := range s.prose {
				text := quotation.ReplaceAllString(linkTarget.ReplaceAllString(l.text, "]"), "")
				if isRow := strings.HasPrefix(text, "|"); !isRow && englishWord.MatchString(text) {
					t.Errorf("%s:%d: English words: %s", p.path, l.number, l.text)
				}
			}
		}
	}
}
