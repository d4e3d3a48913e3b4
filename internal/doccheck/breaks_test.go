package doccheck

import (
	"strings"
	"testing"
)

// Each check is shown pages that are wrong in one thing, and has to find it;
// and the same page put right, where it may find nothing.
func TestTheChecksFindWhatIsWrong(t *testing.T) {
	t.Parallel()
	r := repo(t)
	const chapter, doc = "step04_predecessor_watch/README.md", "docs/zookeeper.md"
	fence := func(language, text string) string { return "# T\n\n```" + language + "\n" + text + "\n```\n" }
	for _, c := range []struct {
		finds       func(repository, page) []string
		path        string
		wrong, says string
		right       string
	}{
		{repository.badLinks, doc, "[a](nowhere.md)", "no such file", "[a](fencing.md)"},
		{repository.badLinks, doc, "[a](fencing.md#nowhere)", "no such heading", "[a](fencing.md#the-token)"},
		{repository.badLinks, doc, "# Here\n[a](#there)", "no such heading", "[a](#sessions)"},
		{repository.badLinks, doc, "[a](../out/tour.html)", "git does not keep", "`out/tour.html`"},
		{repository.badLinks, doc, "[a](../../elsewhere.md)", "leaves the repository", "[a](../README.md)"},
		{repository.badLinks, doc, "![a](herd.svg)", "no such file", "[a](https://zookeeper.apache.org)"},
		{repository.badLinks, doc, `<img src="herd.svg">`, "no such file", "`<img src=\"herd.svg\">`"},
		{repository.badCode, chapter, fence("go", "\tbefore := \"\""), "stands in no Go file",
			fence("go", "\t\tnames, _, err := l.conn.Children(l.dir)")},
		{repository.badCode, chapter, fence("go", "\tw := &waiter{ctx, once, make(chan answer, 1)}"), "stands in no Go file", ""}, // step 5's
		{repository.badCode, doc, fence("go", "package main\n\nfunc main() { f() }"), "does not compile",
			fence("go", "package main\n\nfunc main() {}")},
		{repository.badCode, chapter, fence("go", "func New(conn *zk.Conn) *Lock"), "stands in no Go file",
			fence("go", "func New(conn *zk.Conn, path string) *Lock\nfunc (l *Lock) Unlock() error")},
		{repository.badCode, "step01_plain_node/exercise/hints.md", fence("go", "if {"), "not Go", fence("go", "if f() {\n}")},
		{repository.badQuotes, chapter, fence("", "» 10 waiters, one release: many notifications"), "no test says this",
			fence("", "» 11 waiters, one release: 2 notification, 3 list, 4 names in it")}, // the numbers are held from the other side
		{repository.badQuotes, doc, fence("", "» a read: 0 zxid s"), "no test says this", fence("", "» a create: 1 zxid")},
		{repository.badNames, chapter, "`TestNowhere`", "there is no TestNowhere", "`TestReleaseWakesOne`"},
		{repository.badNames, chapter, "`TestW1PersistentZnode`", "there is no TestW1", "`TestW8TrustsTheWakeUp`"}, // step 2's
		{repository.badCommands, doc, fence("", "make nothing"), "no nothing", fence("", "make test")},
		{repository.badCommands, doc, "say `make see STEP=07`", "no step 07", "say `make see STEP=03`"},
		{repository.badCommands, doc, fence("sh", "make tour STOPS=3"), "nobody looks at STOPS", fence("sh", "WAITERS=9 make tour STEPS=3 # few")},
		{repository.badCommands, doc, fence("", "go test ./step7"), "no package", fence("", "go test -timeout 9s ./step0* ./internal/...")},
		{repository.badCommands, doc, fence("", "go test -run TestNowhere ./step01_plain_node"), "no test there", fence("", "go test -v -run 'TestW[0-9]/x' ./step02_sequential_spin")},
		{repository.badCommands, doc, fence("", "go run ./internal/nothing"), "no package", fence("", "go run ./internal/tour matrix")},
		{repository.badCommands, doc, fence("", "diff -u step01_plain_node/lock.go step02/lock.go"), "exit status 2", fence("", "diff -u step01_plain_node/lock.go step02_sequential_spin/lock.go")},
		{repository.badCommands, doc, fence("", "diff README.md README.md"), "do not differ", ""},
		{repository.badCommands, doc, fence("", "go list ./step07_nothing"), "no package", fence("", "go list ./step01_plain_node")},
	} {
		broken, err := parsePage(c.path, c.wrong)
		if err != nil {
			t.Fatal(err)
		}
		if found := c.finds(r, broken); len(found) != 1 || !strings.Contains(found[0], c.says) {
			t.Errorf("%s\nwant one problem, %q, and found %q", c.wrong, c.says, found)
		}
		sound, err := parsePage(c.path, c.right)
		if err != nil {
			t.Fatal(err)
		}
		// A page of the same path stands for it where its own headings are asked for.
		if found := c.finds(r, sound); len(found) != 0 {
			t.Errorf("%s\nis right, and found was %q", c.right, found)
		}
	}
}

func TestACodeBlockThatIsNotClosedIsFound(t *testing.T) {
	t.Parallel()
	if _, err := parsePage("a.md", "# T\n```go\nx\n"); err == nil {
		t.Error("want an error")
	}
}
