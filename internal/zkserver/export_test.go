package zkserver

import "context"

// What the tests in package zkserver_test see of the inside.
var (
	Ask              = ask
	FindInstallation = findInstallation
	FreePorts        = freePorts
	ReadDump         = readDump
)

// LaunchLocally starts one server of an installation on three ports.
func LaunchLocally(ctx context.Context, i installation, ports []int) (*Ensemble, error) {
	return i.place().launch(ctx, ports, Config{})
}
