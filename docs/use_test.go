//go:build unix

package docs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zklock/internal/check/zktest"
	"zklock/internal/upkeep/doccheck"
)

// What use.md says, done in empty folders beside the repository, with every step's
// folder.
func TestUseInYourOwnService(t *testing.T) {
	t.Parallel()
	page := doccheck.Parse("use.md", text(t, "use.md"))
	require.Len(t, page.Blocks(), 3)
	copied, program, started := page.Blocks()[0].Text, page.Blocks()[1].Text, page.Blocks()[2].Text
	client := regexp.MustCompile(`github.com/go-zookeeper/zk v(\S+)`).FindStringSubmatch(text(t, "../go.mod"))
	require.Contains(t, copied+"\n", "github.com/go-zookeeper/zk@v"+client[1]+"\n", "the repository's own version")

	steps, err := filepath.Glob("../step??_*")
	require.NoError(t, err)
	require.Len(t, steps, 6)
	for _, step := range steps {
		step = filepath.Base(step)
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			name := regexp.MustCompile(`(?m)^package (\w+)$`).FindStringSubmatch(text(t, "../"+step+"/lock.go"))[1]
			as := strings.NewReplacer(
				"step05_reentrant", step,
				"*reentrant.Lock", "*sharedlock.RWLock",
				"reentrant", name,
			)
			if name == "reentrant" {
				as = strings.NewReplacer()
			}
			home := besideTheRepository(t)
			shell(t, home, as.Replace(copied))
			orders := filepath.Join(home, "orders")
			if name != "reentrant" && name != "sharedlock" {
				shell(t, orders, "go build ./...")
				return
			}
			z := zktest.New(t)
			dir := z.Root + "/locks/orders"
			write(t, orders, strings.ReplaceAll(as.Replace(program), "/locks/orders", dir))
			said := shell(t, orders, strings.ReplaceAll(started, "127.0.0.1:2181", z.Addr))
			require.Regexp(t, `stored "shipped" with token [0-9]+`, said)
			require.Equal(t, "there", is(z, dir), "the lock's directory")
			require.Empty(t, z.Names(dir))
		})
	}
	t.Run("where it is", func(t *testing.T) {
		t.Parallel()
		home := besideTheRepository(t)
		shell(t, home, "go mod init orders")
		for _, code := range page.Of("CodeSpan") {
			if strings.HasPrefix(code.Text, "go mod edit ") || strings.HasPrefix(code.Text, "go get zklock/") {
				shell(t, home, strings.ReplaceAll(code.Text, "../zklock", "./zklock"))
			}
		}
		write(t, home, strings.ReplaceAll(program, "orders/reentrant", "zklock/step05_reentrant"))
		shell(t, home, "go build -o main .")
	})
}

// besideTheRepository is an empty folder, but for a way to the repository.
func besideTheRepository(t *testing.T) string {
	t.Helper()
	home := t.TempDir()
	top, err := filepath.Abs(root)
	require.NoError(t, err)
	require.NoError(t, os.Symlink(top, filepath.Join(home, "zklock")))
	return home
}

func write(t *testing.T, dir, program string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o644))
}

// shell runs a script, and returns what it prints. The client has been downloaded,
// and its sum compared, for the repository.
func shell(t *testing.T, dir, script string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	command := exec.CommandContext(ctx, "bash", "-ec", script)
	command.Dir = dir
	command.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOSUMDB=off")
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	output, err := command.CombinedOutput()
	require.NoError(t, ctx.Err(), "waited in vain for this to end:\n%s\n%s", script, output)
	require.NoError(t, err, "%s\n%s", script, output)
	return string(output)
}
