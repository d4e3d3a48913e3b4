package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"zklock/internal/zkserver"
)

// addressFile is where hold finds the server that zk keeps.
const addressFile = "out/zk"

// keep keeps a private server until ctx ends.
func keep(ctx context.Context) error {
	if list := os.Getenv("ZK_SERVERS"); list != "" {
		fmt.Printf("ZK_SERVERS is set, so there are servers already: %s\nmake hold uses them; none is started here\n", list)
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
	err = errors.Join(os.MkdirAll(filepath.Dir(addressFile), 0o755), os.WriteFile(addressFile, []byte(server.Addr), 0o644))
	if err == nil {
		fmt.Printf("%s\nIt is kept until Ctrl-C. In other terminals:\n  make hold STEP=01 NAME=a\n", server.Origin)
		if cli := shell(); cli != "" {
			fmt.Printf("  %s -server %s ls /locks/step01\n", cli, server.Addr)
		}
		<-ctx.Done()
		fmt.Println("\nthe server is stopped")
	}
	return errors.Join(err, server.Stop())
}

// running is the address of the server that zk keeps, "" if there is none.
func running() string {
	addr, err := os.ReadFile(addressFile)
	if err != nil {
		return ""
	}
	if _, err := (&zkserver.Server{Addr: string(addr)}).Word("srvr"); err != nil { // zk was killed
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
