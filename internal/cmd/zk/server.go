package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"zklock/internal/zkserver"
)

// addressFile is the file in which a client finds the address of the server that keep runs.
const addressFile = "out/zk-address"

// keep runs a private server until ctx ends.
func keep(ctx context.Context) error {
	if list := os.Getenv("ZK_SERVERS"); list != "" {
		fmt.Printf("ZK_SERVERS is set, so there are servers already: %s\n", list)
		fmt.Println("make zk STEP=1 uses them; none is started here")
		return nil
	}
	if addr := kept(); addr != "" {
		return fmt.Errorf("make zk is already running in another terminal: its server is at %s", addr)
	}
	server, err := zkserver.Start(ctx)
	if err != nil {
		return err
	}
	err = tell(server)
	if err == nil {
		<-ctx.Done()
		fmt.Println("\nthe server is stopped")
	}
	os.Remove(addressFile)
	return errors.Join(err, server.Stop())
}

// tell writes the server's address into addressFile for clients, and prints it for people.
func tell(server *zkserver.Server) error {
	if err := os.MkdirAll(filepath.Dir(addressFile), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(addressFile, []byte(server.Addr), 0o644); err != nil {
		return err
	}
	fmt.Println(server.Origin)
	fmt.Println("It runs until Ctrl-C. In other terminals:")
	fmt.Println("  make zk STEP=1 NAME=ada")
	if cli := shell(); cli != "" {
		fmt.Printf("  %s -server %s    ZooKeeper's own shell\n", cli, server.Addr)
	}
	return nil
}

// kept returns the address of the server that another terminal keeps running, or "" if there is
// none.
func kept() string {
	addr, _ := os.ReadFile(addressFile)
	if _, err := (&zkserver.Server{Addr: string(addr)}).Word("srvr"); err != nil { // it was killed, or never ran
		return ""
	}
	return string(addr)
}

// find returns the server to use: the one that ZK_SERVERS names, or else the one that is kept.
func find(ctx context.Context) (*zkserver.Server, error) {
	if os.Getenv("ZK_SERVERS") == "" {
		addr := kept()
		if addr == "" {
			return nil, errors.New("there is no server: type make zk in another terminal first, and leave it running")
		}
		os.Setenv("ZK_SERVERS", addr)
	}
	return zkserver.Start(ctx)
}

// shell returns the path of ZooKeeper's own shell, or "" if no installation has it.
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
