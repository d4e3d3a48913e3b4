package zkserver

// What the tests in package zkserver_test see of the inside.
var (
	Ask              = ask
	FindInstallation = findInstallation
	FreePorts        = freePorts
	Launch           = installation.launch
	ReadDump         = readDump
)
