package zkserver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// An installation is a ZooKeeper on this machine and the java to run it with.
type installation struct {
	name      string // for people
	classpath string
	java      string
}

var errNoJava = errors.New("there is no java to run it")

// findLocal looks in ZOOKEEPER_HOME, and only there if it is set, then where
// Debian and Homebrew put ZooKeeper.
func findLocal() (installation, error) {
	if home := os.Getenv("ZOOKEEPER_HOME"); home != "" {
		classpath, ok := classpathIn(home)
		if !ok {
			return installation{}, fmt.Errorf("ZOOKEEPER_HOME=%s holds no zookeeper-*.jar, nor does its lib folder", home)
		}
		return withJava(installation{name: home, classpath: classpath})
	}

	// The manifest of Debian's jar names all others but the one that writes a
	// log and two that TLS needs.
	const debian, more = "/usr/share/java/zookeeper.jar", ":/usr/share/java/slf4j-simple.jar:/usr/share/java/netty-codec.jar:/usr/share/java/netty-resolver.jar"
	if _, err := os.Stat(debian); err == nil {
		return withJava(installation{name: "Debian's package", classpath: debian + more})
	}

	for _, prefix := range []string{"/opt/homebrew", "/usr/local", "/home/linuxbrew/.linuxbrew"} {
		if classpath, ok := classpathIn(prefix + "/opt/zookeeper/libexec"); ok {
			// Homebrew keeps its java off the PATH.
			return withJava(installation{name: "Homebrew", classpath: classpath}, prefix+"/opt/openjdk/bin/java")
		}
	}
	return installation{}, fmt.Errorf("no ZooKeeper is installed: ZOOKEEPER_HOME is not set, and there is no %s and no Homebrew zookeeper", debian)
}

// classpathIn returns the class path of an Apache distribution's folder.
func classpathIn(home string) (string, bool) {
	home, err := filepath.Abs(home)
	if err != nil {
		return "", false
	}
	var found []string
	for _, pattern := range []string{"lib/zookeeper-[0-9]*.jar", "zookeeper-[0-9]*.jar"} {
		jars, _ := filepath.Glob(filepath.Join(home, pattern))
		found = append(found, jars...)
	}
	return strings.Join(append(found, filepath.Join(home, "lib", "*")), ":"), len(found) > 0
}

// withJava adds the java of JAVA_HOME, else one of those given, else of PATH.
func withJava(found installation, candidates ...string) (installation, error) {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		candidates = append([]string{filepath.Join(home, "bin", "java")}, candidates...)
	}
	candidates = append(candidates, "java")
	for _, java := range candidates {
		if path, err := exec.LookPath(java); err == nil {
			found.java = path
			return found, nil
		}
	}
	return found, fmt.Errorf("ZooKeeper is there (%s), but %w: %s not found", found.name, errNoJava, strings.Join(candidates, ", "))
}

// repairLocal returns the command that helps against an error of startLocal.
func repairLocal(err error) string {
	if os.Getenv("ZOOKEEPER_HOME") != "" && !errors.Is(err, errNoJava) {
		return "unset ZOOKEEPER_HOME"
	}
	return InstallCommand()
}

func checkLocal(context.Context) error {
	_, err := findLocal()
	return err
}

// startLocal runs a private server as a child process on a free port, with
// its data in a temporary folder.
func startLocal(ctx context.Context, config Config) (*Server, error) {
	found, err := findLocal()
	if err != nil {
		return nil, err
	}
	return onFreePorts(2, func(ports []int) (*Server, error) {
		return found.launch(ctx, ports[0], ports[1], config)
	})
}

// onFreePorts calls start with n free ports, and again with others if someone
// has taken one of them before the server did.
func onFreePorts[S any](n int, start func(ports []int) (S, error)) (s S, err error) {
	for range 5 {
		var ports []int
		for len(ports) < n {
			port, err := freePort()
			if err != nil {
				return s, err
			}
			if !slices.Contains(ports, port) {
				ports = append(ports, port)
			}
		}
		if s, err = start(ports); err == nil || !strings.Contains(err.Error(), portTaken) {
			break
		}
	}
	return s, err
}

const portTaken = "BindException" // as java says it

// launch starts a server in a folder of its own and waits until it serves.
func (found installation) launch(ctx context.Context, port, second int, config Config) (*Server, error) {
	home, remove, err := newHome()
	if err != nil {
		return nil, err
	}
	p := &process{installation: found, dir: filepath.Join(home, "1"), addr: fmt.Sprintf("127.0.0.1:%d", port)}
	err = p.prepare(zooCfg(p.data(), "127.0.0.1", port, config.lines(p.dir, "127.0.0.1", second)), config.Files)
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		err = p.start(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, p.kill(), remove())
	}
	s := &Server{Addr: p.addr, Second: fmt.Sprintf("127.0.0.1:%d", second), servers: []string{p.addr}, process: p}
	s.stop = sync.OnceValue(func() error { return errors.Join(p.kill(), remove()) })
	s.Origin = fmt.Sprintf("%s, %s, private process on %s", found.name, s.version(), s.Addr)
	return s, nil
}

// newHome makes the temporary folder that holds the folders of servers, under
// a watchdog. remove, or the end of this process, kills these servers and
// removes the folder.
//
// Java has to end, and its folder to go, however this process ends: by Stop,
// os.Exit, a panic, Ctrl-C, or SIGKILL, which leaves no time for a clean-up.
// Only another process can see to that, and the kernel tells it: it closes a
// pipe that this process alone holds open. (Linux could kill java by itself,
// through Pdeathsig, but it does so as soon as the *thread* that started java
// ends, which Go's scheduler decides; and nothing would remove the folder.)
func newHome() (home string, remove func() error, err error) {
	home, err = os.MkdirTemp("", "zklock-")
	if err != nil {
		return "", nil, err
	}
	remove, err = watchdog(`for file in "$1"/*/pid; do read -r pid <"$file" && kill -9 "$pid"; done
		rm -rf "$1" || { sleep 1; rm -rf "$1"; }`, home)
	if err != nil {
		os.RemoveAll(home)
	}
	return home, remove, err
}

// A process is a server that runs as a child process.
type process struct {
	installation
	dir  string // within a home
	addr string // for clients

	java   *exec.Cmd     // the last one
	gone   chan struct{} // closed when it has ended
	paused bool
}

func (p *process) data() string { return filepath.Join(p.dir, "data") }

// Without a configuration, logback writes all it can, each request included.
const quietLogback = `<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%level %logger: %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="out"/></root>
</configuration>
`

// prepare makes the server's folder, with its configuration and other files.
func (p *process) prepare(config string, files map[string]string) error {
	err := os.MkdirAll(p.data(), 0o700)
	write := func(name, text string) {
		err = errors.Join(err, os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600))
	}
	write("zoo.cfg", config)
	write("logback.xml", quietLogback)
	for name, text := range files {
		write(name, text)
	}
	return err
}

// start starts java and waits until it serves.
func (p *process) start(ctx context.Context) error {
	if p.java != nil && !p.ended() {
		return errors.New("it runs already")
	}
	if err := p.run(); err != nil {
		return err
	}
	// Should the port be another server's, that one would answer, and be gone
	// when its own test ends: make sure that it is the one with our folder.
	_, err := await(ctx, []string{p.addr}, "conf", p.data(), 150*time.Millisecond, p.failed)
	if err != nil {
		return fmt.Errorf("%s with the ZooKeeper of %s: %w; the end of its log:\n%s", p.installation.java, p.name, err, lastLines(p.log(), 25))
	}
	return nil
}

// run starts java.
func (p *process) run() error {
	log, err := os.Create(filepath.Join(p.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()

	// The shell becomes java only once it is told to, which is when the
	// watchdog can find its number: at no moment is there a java that nobody
	// watches.
	java := exec.Command("sh", "-c", `read -r go && exec "$@" </dev/null`, "sh", p.installation.java,
		// Quick to start, and small.
		"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m",
		// A killed java would leave its performance file in /tmp.
		"-XX:-UsePerfData",
		// Warnings only, in Apache's distribution and in Debian's.
		"-Dlogback.configurationFile="+filepath.Join(p.dir, "logback.xml"), "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-cp", p.classpath, "org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(p.dir, "zoo.cfg"))
	java.Stdout, java.Stderr = log, log
	java.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is not for java
	start, err := java.StdinPipe()
	if err != nil {
		return err
	}
	defer start.Close()
	if err := java.Start(); err != nil {
		return err
	}
	pid := filepath.Join(p.dir, "pid")
	err = os.WriteFile(pid, fmt.Appendln(nil, java.Process.Pid), 0o600)
	if err == nil {
		_, err = start.Write([]byte("go\n"))
	}
	gone := make(chan struct{})
	go func() {
		java.Wait()
		os.Remove(pid) // the number is free for another process
		close(gone)
	}()
	p.java, p.gone, p.paused = java, gone, false
	return err
}

// ended tells whether java has ended.
func (p *process) ended() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

// failed tells why java will never serve, if so. A server of an ensemble that
// cannot have its port goes on trying.
func (p *process) failed() error {
	switch {
	case p.ended():
		return errors.New("java ended before it served")
	case strings.Contains(p.log(), portTaken):
		return errors.New("a port is taken")
	default:
		return nil
	}
}

func (p *process) log() string {
	text, _ := os.ReadFile(filepath.Join(p.dir, "log"))
	return string(text)
}

// kill returns when java has ended.
func (p *process) kill() error {
	if p.java == nil {
		return nil
	}
	p.java.Process.Kill() // fails if it has ended already
	<-p.gone
	return nil
}

// quit returns when java has ended, in good order.
func (p *process) quit() error {
	if err := p.java.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.gone
	return nil
}

func (p *process) pause() error {
	if p.paused {
		return nil
	}
	if err := p.java.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	p.paused = true
	// All of java's threads have to stop; the kernel tells when they have.
	for {
		_, err := syscall.Wait4(p.java.Process.Pid, nil, syscall.WUNTRACED, nil)
		if err != syscall.EINTR {
			return err
		}
	}
}

func (p *process) resume() error {
	p.paused = false
	return p.java.Process.Signal(syscall.SIGCONT)
}

// watchdog starts a shell that runs the script once this process has ended,
// in whatever way, or has called stop, which waits until the script is done.
// The script finds args in $1, $2 and so on; none may be empty.
func watchdog(script string, args ...string) (stop func() error, err error) {
	for _, arg := range args {
		if arg == "" {
			return nil, errors.New("zkserver: a watchdog's argument is empty") // think of rm -rf
		}
	}
	// Go opens both ends close-on-exec: no child inherits the write end.
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	shell := exec.Command("sh", append([]string{"-c", "cat >/dev/null; " + script, "sh"}, args...)...)
	shell.Stdin = r
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C must not end it
	if err := shell.Start(); err != nil {
		w.Close()
		return nil, err
	}
	return sync.OnceValue(func() error {
		w.Close()
		if err := shell.Wait(); err != nil {
			return fmt.Errorf("cleaning up after ZooKeeper: %w", err)
		}
		return nil
	}), nil
}

// freePort returns a port that nobody listens on. It is below those that
// systems give to outgoing connections: one of these could take the port of a
// server that is down for a while.
func freePort() (port int, err error) {
	for range 100 {
		port = 20000 + rand.IntN(12000)
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, err
}

// lastLines returns the last n lines of a text.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
