package doccheck

import (
	"regexp"
	"strings"
	"testing"
)

// notInChinese are words that the Chinese pages do not use, and the term in their place. Only the
// glossary may name them, since the course's documents or other books do.
var notInChinese = [][2]string{
	{"应答", "响应"},
	{"隔离令牌", "围栏令牌"},
	{"读来的", "未实测"},
	{"没有试过", "未实测"},
	{"换手", "易主"},
	{"临界区", "持有锁"},
	{"轮到的那个", "排在下一位的客户端"},
}

func TestTheChinesePagesUseTheTermsOfTheGlossary(t *testing.T) {
	for _, p := range read(t).pages {
		for _, s := range p.sections {
			if s.heading == "术语表" {
				continue
			}
			for _, l := range s.prose {
				for _, word := range notInChinese {
					if strings.HasSuffix(p.path, ".zh-CN.md") && strings.Contains(l.text, word[0]) {
						t.Errorf("%s:%d: say %s, and not %s", p.path, l.number, word[1], word[0])
					}
				}
			}
		}
	}
}

var (
	endsInMark     = regexp.MustCompile(`[。，：；！？）”]$`)
	beginsWithWord = regexp.MustCompile(`^[\p{L}\p{N}]`)
)

// Markdown does not end a bold text with a Chinese mark in it when a word follows at once.
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
