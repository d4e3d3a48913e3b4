package doccheck

import (
	"context"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zklock/internal/zktest"
)

const use = "docs/use.md"

// What docs/use.md says, done in empty folders beside the repository, with every
// step's folder.
func TestUseInYourOwnService(t *testing.T) {
	t.Parallel()
	r := repo(t)
	p := r.pages[slices.IndexFunc(r.pages, func(p page) bool { return p.path == use })]
	require.Len(t, p.blocks, 3)
	copied, program, started := p.blocks[0].text(), p.blocks[1].text(), p.blocks[2].text()
	version := regexp.MustCompile(`github.com/go-zookeeper/zk (v\S+)`).FindStringSubmatch(text(t, "go.mod"))
	require.Contains(t, copied+"\n", "github.com/go-zookeeper/zk@"+version[1]+"\n", "%s does not say the repository's own version", use)

	steps, err := filepath.Glob(filepath.Join(root, "step??_*"))
	require.NoError(t, err)
	require.Len(t, steps, 6)
	for _, step := range steps {
		t.Run(filepath.Base(step), func(t *testing.T) {
			t.Parallel()
			home, name := besideTheRepository(t), packageOf(t, step)
			as := strings.NewReplacer("step05_reentrant", filepath.Base(step), "*reentrant.Lock", "*sharedlock.RWLock", "reentrant", name)
			if name == "reentrant" {
				as = strings.NewReplacer()
			}
			shell(t, home, as.Replace(copied))
			orders := filepath.Join(home, "orders")
			if name != "reentrant" && name != "sharedlock" {
				shell(t, orders, "go build ./...")
				return
			}
			z := zktest.New(t)
			dir := z.Root + "/locks/orders"
			require.NoError(t, os.WriteFile(filepath.Join(orders, "main.go"), []byte(strings.ReplaceAll(as.Replace(program), "/locks/orders", dir)), 0o644))
			said := shell(t, orders, strings.ReplaceAll(started, "127.0.0.1:2181", z.Addr))
			require.Regexp(t, `stored "shipped" with token [0-9]+`, said)
			_, there := z.Owner(dir)
			require.True(t, there, "nobody has locked %s", dir)
			require.Empty(t, z.Names(dir))
		})
	}

	t.Run("where it is", func(t *testing.T) {
		t.Parallel()
		home := besideTheRepository(t)
		shell(t, home, "go mod init orders")
		for _, c := range p.commands() {
			if words := strings.Join(c.words, " "); strings.Contains(words, "-replace") || strings.HasSuffix(words, "/step05_reentrant") {
				shell(t, home, strings.ReplaceAll(words, "../zklock", "./zklock"))
			}
		}
		moved := strings.ReplaceAll(program, "orders/reentrant", "zklock/step05_reentrant")
		require.NoError(t, os.WriteFile(filepath.Join(home, "main.go"), []byte(moved), 0o644))
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

func packageOf(t *testing.T, step string) string {
	t.Helper()
	return regexp.MustCompile(`(?m)^package (\w+)$`).FindStringSubmatch(text(t, path.Join(filepath.Base(step), "lock.go")))[1]
}

// text is a file of the repository.
func text(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return string(b)
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
