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
