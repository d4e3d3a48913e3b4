package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"zklock/internal/zkserver"
)

// with runs a command whose processes use one server, which they find by ZK_SERVERS. If no server
// runs already, with starts one, and stops it afterwards.
func with(ctx context.Context, command []string) error {
	if len(command) == 0 {
		return errors.New("zk with: name the command to run, for example zk with go test ./step0*")
	}
	server, err := zkserver.Start(ctx)
	if err != nil {
		return err
	}
	fmt.Println(server.Origin)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = server.Environ()
	return errors.Join(cmd.Run(), server.Stop())
}
