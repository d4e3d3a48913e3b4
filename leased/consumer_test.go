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

	"zklock/internal/zktest"
)

// host stands for the place where the repository is kept, and version for a version that is tagged there.
const (
	host    = "example.com/owner/zklock/leased"
	version = "v0.1.0"
)

// A program elsewhere gets leased by its version, as the README says. The program has an empty module and a
// module proxy. The proxy makes leased from the present files, and has the other modules that this module's
// tests need.
func TestAProgramElsewhereGetsLeasedWithAVersion(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	program := t.TempDir()
	env := append(os.Environ(),
		"GOPROXY="+proxyOfLeased(t)+",file://"+filepath.ToSlash(moduleCache(t)),
		"GOMODCACHE="+t.TempDir(), // nothing comes from a version that was downloaded before
		"GOFLAGS=-modcacherw",     // otherwise the folder could not be removed
		"GOSUMDB=off", "GOWORK=off", "GOTOOLCHAIN=local", "GONOPROXY=none", "GOPRIVATE=",
		"ZK_SERVERS="+strings.Join(zktest.Servers(), ","),
	)
	said := func(command ...string) string {
		t.Helper()
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		cmd.Dir, cmd.Env = program, env
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", strings.Join(command, " "), out)
		return string(out)
	}
	said("go", "mod", "init", "orders")
	for _, command := range commandsToGetIt(t) {
		said(strings.Fields(command)...)
	}
	require.NoError(t, os.WriteFile(filepath.Join(program, "main.go"), []byte(firstExample(t)), 0o644))
	said("go", "mod", "tidy")
	said("go", "vet", ".")
	said("go", "build", "-o", "orders", ".")
	assert.Equal(t, "stored \"shipped\"\n", said(filepath.Join(program, "orders")))

	// Its unit tests run without a server.
	require.NoError(t, os.Mkdir(filepath.Join(program, "unit"), 0o755))
	unit, err := os.ReadFile("leasedtest/example_test.go")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(program, "unit", "example_test.go"), unit, 0o644))
	assert.Contains(t, said("env", "-u", "ZK_SERVERS", "go", "test", "-v", "./unit"), "--- PASS: Example (")

	modules := strings.Fields(said("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "."))
	once := map[string]bool{}
	for _, module := range modules {
		once[module] = true
	}
	want := map[string]bool{"orders": true, "zklock/leased": true, "github.com/go-zookeeper/zk": true}
	assert.Equal(t, want, once, "modules in the program")
	sums, err := os.ReadFile(filepath.Join(program, "go.mod"))
	require.NoError(t, err)
	assert.NotContains(t, string(sums), "testify", "go.mod has what only leased's tests need")
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

// moduleCache returns the folder where Go keeps what it has downloaded, in the form of a proxy.
func moduleCache(t *testing.T) string {
	t.Helper()
	folder, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE").Output()
	require.NoError(t, err)
	return filepath.Join(strings.TrimSpace(string(folder)), "cache", "download")
}

// readme returns the README's text.
func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	return string(text)
}

// block returns the first block of code in a language.
func block(t *testing.T, language string) string {
	t.Helper()
	_, text, found := strings.Cut(readme(t), "```"+language+"\n")
	require.True(t, found, "README.md has no code in %s", language)
	code, _, _ := strings.Cut(text, "```")
	return code
}

// commandsToGetIt returns the README's commands, with the host of this test.
func commandsToGetIt(t *testing.T) (commands []string) {
	t.Helper()
	for line := range strings.Lines(block(t, "sh")) {
		if strings.HasPrefix(line, "go mod edit") {
			commands = append(commands, strings.ReplaceAll(line, "HOST/OWNER/zklock/leased", host))
		}
	}
	require.NotEmpty(t, commands, "go mod edit in README.md")
	return commands
}

// firstExample returns the README's first example as a program.
func firstExample(t *testing.T) string {
	t.Helper()
	return `package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"zklock/leased"
)

func main() {
	if err := run(strings.Split(os.Getenv("ZK_SERVERS"), ",")); err != nil {
		log.Fatal(err)
	}
}

` + block(t, "go")
}
