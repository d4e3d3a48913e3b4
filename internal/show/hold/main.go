// Command hold shows a lock in terminals, one for each client: "zk" keeps a server,
// and "hold" takes a step's lock there and says what it does. The make targets zk
// and hold call it, from the root of the repository.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"zklock/internal/check/tables"
	"zklock/internal/property"
	"zklock/internal/server/process"
	"zklock/internal/server/zkserver"
)

const usage = `usage, from the root of the repository:
  go run ./internal/show/hold zk              keep a server until Ctrl-C
  go run ./internal/show/hold hold 4 a        take step 4's lock as a
  go run ./internal/show/hold hold 6 a read   take step 6's lock as a reader`

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	ctx, stop := process.UntilStopped()
	defer stop()
	if err := do(ctx, stop, args); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func do(ctx context.Context, stop func(), args []string) error {
	switch {
	case len(args) == 1 && args[0] == "zk":
		return keep(ctx)
	case !asksToHold(args):
		return errors.New(usage)
	}
	step, found := tables.Step(strings.TrimLeft(args[1], "0"))
	reader := len(args) == 4
	switch {
	case !found:
		return fmt.Errorf("STEP=%s: there are the steps 1 to %d", args[1], len(tables.Steps()))
	case reader && !property.Has(step.Key, property.Shared):
		return fmt.Errorf("READ with STEP=%s: only step 6 has readers", args[1])
	}
	name := fmt.Sprintf("p%d", os.Getpid())
	if len(args) > 2 {
		name = cmp.Or(args[2], name)
	}
	return hold(ctx, stop, step.Key, name, reader)
}

// asksToHold tells whether the arguments name a step, and perhaps the client, and perhaps
// that it reads.
func asksToHold(args []string) bool {
	switch len(args) {
	case 2, 3:
		return args[0] == "hold"
	case 4:
		return args[0] == "hold" && args[3] == "read"
	}
	return false
}

// addressFile is where hold finds the server that zk keeps.
const addressFile = "out/zk"

// keep keeps a private server until ctx ends.
func keep(ctx context.Context) error {
	if list := os.Getenv("ZK_SERVERS"); list != "" {
		fmt.Fprintf(
			os.Stdout,
			"ZK_SERVERS is set, so there are servers already: %s\nmake hold uses them; none is started here\n",
			list,
		)
		return nil
	}
	if addr := running(); addr != "" {
		return fmt.Errorf("make zk runs already, in another terminal: its server is at %s", addr)
	}
	server, err := zkserver.Start(ctx)
	if err != nil {
		return err
	}
	defer os.Remove(addressFile)
	err = errors.Join(
		os.MkdirAll(filepath.Dir(addressFile), 0o755),
		os.WriteFile(addressFile, []byte(server.Addr), 0o644),
	)
	if err == nil {
		fmt.Fprintf(
			os.Stdout,
			"%s\nIt is kept until Ctrl-C. In other terminals:\n  make hold STEP=1 NAME=a\n",
			server.Origin,
		)
		if cli := shell(); cli != "" {
			fmt.Fprintf(os.Stdout, "  %s -server %s ls /locks/step01\n", cli, server.Addr)
		}
		<-ctx.Done()
		fmt.Fprintln(os.Stdout, "\nthe server is stopped")
	}
	return errors.Join(err, server.Stop())
}

// running is the address of the server that zk keeps, "" if there is none.
func running() string {
	addr, _ := os.ReadFile(addressFile)
	if _, err := (&zkserver.Server{Addr: string(addr)}).Word("srvr"); err != nil { // zk was killed, or never ran
		return ""
	}
	return string(addr)
}

// find returns the server to use: what ZK_SERVERS names, else what zk keeps.
func find(ctx context.Context) (*zkserver.Server, error) {
	if os.Getenv("ZK_SERVERS") == "" {
		addr := running()
		if addr == "" {
			return nil, errors.New("there is no server: type make zk in another terminal first, and leave it running")
		}
		os.Setenv("ZK_SERVERS", addr)
	}
	os.Setenv("ZK_BACKEND", "existing")
	return zkserver.Start(ctx)
}

// shell is ZooKeeper's own shell, where an installation has it, "" if there is none.
func shell() string {
	for _, path := range []string{
		filepath.Join(os.Getenv("ZOOKEEPER_HOME"), "bin/zkCli.sh"),
		"/usr/share/zookeeper/bin/zkCli.sh", // Debian's
		"/opt/homebrew/bin/zkCli", "/usr/local/bin/zkCli", "/home/linuxbrew/.linuxbrew/bin/zkCli",
	} {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}
