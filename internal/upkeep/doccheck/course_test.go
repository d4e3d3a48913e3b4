package doccheck

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"zklock/internal/check/tables"
)

// The documents of the course, by their headings in docs/course.md, and their sections:
// by their own headings, and where a document has none, by words of its own. The
// documents themselves are not in the repository.
var course = map[string][]string{
	"基于zookeeper实现分布式锁(下)": {
		"优化：性能优化", "实现阻塞锁", "测试结果", "解决方案", "监听实现阻塞锁", "阻塞其他的操作", "压力测试", "优化：可重入锁",
		"小结 1", "小结 2", "小结 3", "小结 4", "小结 5", "小结 5, 6", "小结 7",
	},
	`51CTO, "ZooKeeper locks and Curator's source"`: {
		"多层级的节点命名空间", "上限为1M", "大部分机器可用", "架构简图", "有序性", "特性 1", "特性 2", "特性 3", "持久节点、持久顺序节点、临时节点、临时顺序节点",
		"getData、getChildren、exists", "算法流程", "步骤 1", "步骤 2", "羊群效应", "调整后的算法流程", "实现步骤", "接到通知时", "ZooKeeperLock",
		"测试", "四种分布式锁", "添加依赖", "测试代码", "Curator的源码分析", "getData() 而不是 checkExists()",
	},
	"Java 基于 ZooKeeper 实现分布式锁需要注意什么": {
		"操作原子性、可重入性、效率", "Zookeeper 分布式锁原理", "最直接的 zk lock", "sequence node", "watcher", "guid 的特殊 case", "代码实现 lock()",
		"自动释放的情况",
		"acquire()",
		"LockWatcher",
		"createLockPath、deletePath",
		"getAllSortedPaths",
		"unlock()",
		"removeWatchers",
		"总结",
	},
	"ZooKeeper 如何实现分布式锁": {
		"排他锁", "排他锁 定义锁、获取锁", "排他锁 释放锁", "共享锁", "共享锁 定义锁、获取锁", "判断读写顺序", "共享锁 释放锁", "羊群效应", "改进方案",
	},
	"ZooKeeper locks and how to avoid the herd effect": {
		"一般的分布式锁实现", "临时顺序节点", "释放锁", "问题所在", "10 台机器", "改进后的分布式锁实现", "结论",
	},
}

// Each section of the documents has a row in docs/course.md, which says where it is
// run, and what came out.
func TestEverySectionOfTheCourseHasARow(t *testing.T) {
	t.Parallel()
	verdict := regexp.MustCompile(`holds|in this sense|not so|W[0-9]`)
	told := 0
	for _, s := range repo(t).pages["docs/course.md"].sections() {
		sections, ok := course[s.Pieces[0].Text]
		if !ok {
			continue
		}
		told++
		var rows []string
		for row := range slices.Chunk(s.Of("TableCell")[4:], 4) { // behind the head
			rows = append(rows, row[0].Text)
			for _, cell := range row {
				assert.NotEmpty(t, strings.TrimSpace(cell.Text), "%s, a cell of %q", s.Path, row[0].Text)
			}
			assert.Regexp(t, verdict, row[3].Text, "what came out of %q", row[0].Text)
		}
		for _, section := range sections {
			has := slices.ContainsFunc(rows, func(row string) bool { return strings.Contains(row, section) })
			assert.True(t, has, "%s: no row of %q", s.Pieces[0].Text, section)
		}
	}
	assert.Equal(t, len(course), told, "documents in docs/course.md")
}

// The box at the head of a chapter leads to the rows of each document that it names.
func TestTheBoxOfAChapterLeadsToTheRows(t *testing.T) {
	t.Parallel()
	boxes := 0
	for _, p := range repo(t).pages {
		for line := range strings.Lines(p.Source) {
			if !stepReadme.MatchString(p.Path) || !strings.HasPrefix(line, "> **In the course:**") {
				continue
			}
			boxes++
			named := 0
			for title := range course {
				if strings.Contains(line, strings.TrimPrefix(title, "51CTO, ")) {
					named++
				}
			}
			assert.Equal(
				t,
				named,
				strings.Count(line, "](../docs/course.md#"),
				"%s: links to the rows of the documents that the box names",
				p.Path,
			)
		}
	}
	assert.Equal(t, len(tables.Steps()), boxes, "chapters with a box")
}
