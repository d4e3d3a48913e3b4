package leased_test

import (
	"archive/zip"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"zklock/leased"

	"zklock/internal/zktest"
)

// host stands for the place where the repository is kept, and version for a version that is tagged there.
const (
	host    = "example.com/owner/zklock/leased"
	version = "v0.1.0"
)

// A program elsewhere gets leased by its version, as the README says. It is the README's program. It has an empty
// module and a module proxy. The proxy makes leased from the present files, and has the other modules that this
// module's tests need.
func TestAProgramElsewhereGetsLeasedWithAVersion(t *testing.T) {
	t.Parallel()
	p := newProgram(t, "GOPROXY="+proxyOfLeased(t)+","+moduleCache(t), "GOMODCACHE="+t.TempDir())
	p.run("go", "mod", "init", "orders")
	p.run("sh", "-ec", strings.ReplaceAll(shell(t, "HOST"), "HOST/OWNER/zklock/leased", host))
	p.run("go", "vet", ".")
	p.run("go", "build", "-o", "orders", ".")
	symbols := p.run("go", "tool", "nm", "orders")
	assert.True(t, strings.Contains(symbols, "zklock/leased.Open"), "the program's symbols have leased.Open")
	hasFake := strings.Contains(strings.ToLower(symbols), "zklock/leased.inmemory")
	assert.False(t, hasFake, "the program's symbols have what only leasedtest needs")
	assert.Contains(t, p.run("go", "test"), "ok") // without a server

	modules := strings.Fields(p.run("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "."))
	once := map[string]bool{}
	for _, module := range modules {
		once[module] = true
	}
	want := map[string]bool{"orders": true, "zklock/leased": true, "github.com/go-zookeeper/zk": true}
	assert.Equal(t, want, once, "modules in the program")
	sums, err := os.ReadFile(filepath.Join(p.folder, "go.mod"))
	require.NoError(t, err)
	assert.NotContains(t, string(sums), "testify", "go.mod has what only leased's tests need")
}

// The commands of the README get leased from a clone, run the unit tests, and run the program. Another process holds
// its lock: the job waits, and the page's requests are refused. Then the job is done, and they are served. SIGTERM ends
// the program, whose locks are free at once.
func TestTheProgramOfTheREADME(t *testing.T) {
	t.Parallel()
	z := zktest.New(t)
	p := newProgram(t, "GOPROXY="+moduleCache(t))
	clone, err := filepath.Abs("..")
	require.NoError(t, err)
	said := p.run("sh", "-ec", strings.ReplaceAll(shell(t, "ZKLOCK="), "/path/to/zklock", clone))
	require.Contains(t, said, "ok")
	for i, name := range filesToPaste {
		copied, err := os.ReadFile(filepath.Join(p.folder, name))
		require.NoError(t, err)
		require.Equal(t, string(copied), blocks(t, "go")[i], "the page's %s", name)
	}

	// go run would keep SIGTERM from the program, so the test builds it.
	const start = "go run . -zookeeper $(cat \"$ZKLOCK/out/zk-address\")\n"
	require.Equal(t, start, shell(t, "go run"))
	p.run("go", "build", "-o", "orders", ".")
	session, err := leased.Open(z.Ctx, zktest.Servers(), zktest.SessionTimeout)
	require.NoError(t, err)
	defer session.Close()
	other, err := leased.NewMutex(session, "/locks/orders").Lock(z.Ctx)
	require.NoError(t, err)

	sendRequests := func(address string) *zktest.Process {
		loop := strings.ReplaceAll(shell(t, "curl"), "127.0.0.1:8080", address)
		return z.Command(exec.CommandContext(z.Ctx, "sh", "-c", loop))
	}
	const nobodyServes = "127.0.0.1:1"
	require.Equal(t, "000", sendRequests(nobodyServes).Line(), "before the program serves")

	flags := []string{"-zookeeper", strings.Join(zktest.Servers(), ","), "-listen", "127.0.0.1:0"}
	orders := z.Command(exec.CommandContext(z.Ctx, filepath.Join(p.folder, "orders"), flags...))
	address, isServing := strings.CutPrefix(orders.Line(), "serving ")
	require.True(t, isServing)
	answers := sendRequests(address)
	require.Equal(t, "409", answers.Line(), "while another process holds the lock")
	require.NoError(t, other.Unlock())
	shipped := 0
	nextLine := func() string { // of the program, except those of the orders that are shipped meanwhile
		line := orders.Line()
		for ; line == `stored "shipped"`; line = orders.Line() {
			shipped++
		}
		return line
	}
	require.Equal(t, "packing for ten seconds", nextLine())
	before := shipped
	require.Equal(t, `stored "packed"`, nextLine())
	require.Equal(t, before, shipped, "orders shipped while the job holds the lock")
	require.Equal(t, "packing has ended: <nil>", nextLine())
	require.Contains(t, nextLine(), "leading, with token")
	answer := answers.Line()
	for answer == "409" {
		answer = answers.Line()
	}
	require.Equal(t, "200", answer)
	answers.Kill()
	orders.Terminate()
	require.Equal(t, "Campaign has returned: <nil>", nextLine())
	require.Positive(t, shipped)
	for _, path := range []string{"/locks/orders", "/locks/payments"} {
		next, err := leased.NewMutex(session, path).Lock(z.Ctx)
		require.NoError(t, err)
		require.NoError(t, next.Unlock())
	}
}

// filesToPaste are the README's first blocks of Go.
var filesToPaste = []string{"main.go", "main_test.go"}

// A program is the README's main.go and main_test.go, in a folder of their own.
type program struct {
	t      *testing.T
	folder string
	env    []string
}

func newProgram(t *testing.T, env ...string) program {
	t.Helper()
	code := blocks(t, "go")
	folder := t.TempDir()
	for i, name := range filesToPaste {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(code[i]), 0o644))
	}
	env = append(env,
		"GOFLAGS=-modcacherw", // otherwise a folder of modules could not be removed
		"GOSUMDB=off", "GOWORK=off", "GOTOOLCHAIN=local", "GONOPROXY=none", "GOPRIVATE=",
	)
	return program{t, folder, append(os.Environ(), env...)}
}

// run runs a command in the program's folder, and returns what it prints.
func (p program) run(command ...string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.Env = p.folder, p.env
	out, err := cmd.CombinedOutput()
	require.NoError(p.t, err, "%s: %s", strings.Join(command, " "), out)
	return string(out)
}

// proxyOfLeased makes a module proxy for leased alone, and returns its address.
func proxyOfLeased(t *testing.T) string {
	t.Helper()
	proxy := t.TempDir()
	at := filepath.Join(proxy, filepath.FromSlash(host), "@v")
	require.NoError(t, os.MkdirAll(at, 0o755))
	mod, err := os.ReadFile("go.mod")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(at, version+".mod"), mod, 0o644))
	info := `{"Version":"` + version + `","Time":"2026-01-01T00:00:00Z"}`
	require.NoError(t, os.WriteFile(filepath.Join(at, version+".info"), []byte(info), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(at, "list"), []byte(version+"\n"), 0o644))
	file, err := os.Create(filepath.Join(at, version+".zip"))
	require.NoError(t, err)
	archive := zip.NewWriter(file)
	require.NoError(t, filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			_, err := os.Stat(filepath.Join(path, "go.mod"))
			if isOtherModule := path != "." && err == nil; isOtherModule {
				return fs.SkipDir
			}
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		w, err := archive.Create(host + "@" + version + "/" + filepath.ToSlash(path))
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	}))
	require.NoError(t, archive.Close())
	require.NoError(t, file.Close())
	return "file://" + filepath.ToSlash(proxy)
}

// moduleCache returns the address of the folder where Go keeps what it has downloaded, in the form of a proxy.
func moduleCache(t *testing.T) string {
	t.Helper()
	folder, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE").Output()
	require.NoError(t, err)
	return "file://" + filepath.ToSlash(filepath.Join(strings.TrimSpace(string(folder)), "cache", "download"))
}

// blocks returns the README's blocks of code in a language.
func blocks(t *testing.T, language string) (all []string) {
	t.Helper()
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for _, begun := range strings.Split(string(text), "```"+language+"\n")[1:] {
		code, _, _ := strings.Cut(begun, "```")
		all = append(all, code)
	}
	return all
}

// shell returns the README's block of commands that has a text.
func shell(t *testing.T, text string) string {
	t.Helper()
	for _, commands := range blocks(t, "sh") {
		if strings.Contains(commands, text) {
			return commands
		}
	}
	require.FailNow(t, "README.md has no such commands", text)
	return ""
}
