package doccheck

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "writes the heads of the road's pages")

// docs/README.md lists the road. What each of its pages says about it must agree: its title, the
// line below the title, and further down a link to the next page. After a change of the list, this
// writes the lines below the titles:
//
//	go test ./internal/doccheck -run TestTheRoad -update
func TestTheRoad(t *testing.T) {
	texts, err := Files(root, ".md")
	require.NoError(t, err)
	for _, list := range []string{"docs/README.md", "docs/README.zh-CN.md"} {
		road := Road(list, texts[list])
		require.Greater(t, len(road), 10, "pages of the road in %s", list)
		for i, stop := range road {
			lines := strings.SplitN(texts[stop.Path], "\n", 4)
			if !assert.Len(t, lines, 4, "lines of %s", stop.Path) {
				continue
			}
			assert.Equal(t, "# "+stop.Title, lines[0], "the title of %s, as %s has it", stop.Path, list)
			isFront := i == 0 // it begins with what this is, and not with where one is
			if *update && !isFront {
				lines[2] = Head(road, i)
				file := filepath.Join(root, filepath.FromSlash(stop.Path))
				require.NoError(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o644))
			}
			if !isFront {
				assert.Equal(t, Head(road, i), lines[2], "the line below the title of %s; -update writes it", stop.Path)
			}
			if i+1 < len(road) {
				assert.Contains(t, leadsTo(stop.Path, texts[stop.Path]), road[i+1].Path,
					"the links of %s, without those below its title", stop.Path)
			}
		}
	}
}

// leadsTo lists the files that a page links to, without the line below its title.
func leadsTo(path, text string) (files []string) {
	p := parse(path, text)
	for _, s := range p.sections {
		for _, l := range s.links() {
			if l.number != 3 {
				file, _ := p.resolve(l.text)
				files = append(files, file)
			}
		}
	}
	return files
}

func TestHead(t *testing.T) {
	const list = "| 1 | [zklock](../README.md) | what? | 5 |\n| 2 | [A](a.md) | which? | 15 |\n" +
		"| 3 | [Step 1](../step01/README.md) | how? | 60 |\n"
	road := Road("pages/README.md", list)
	require.Equal(t, []Stop{{"README.md", "zklock", 5}, {"pages/a.md", "A", 15}, {"step01/README.md", "Step 1", 60}}, road)
	assert.Equal(t, "[← zklock](../README.md) · **2 of 3**, 15 minutes · [Step 1 →](../step01/README.md) · [中文](a.zh-CN.md)",
		Head(road, 1))
	chinese := []Stop{{"README.zh-CN.md", "首页", 5}, {"pages/a.zh-CN.md", "甲", 15}}
	assert.Equal(t, "[← 首页](../README.zh-CN.md) · **第 2 页，共 2 页**，15 分钟 · [English](a.md)", Head(chinese, 1))
}
