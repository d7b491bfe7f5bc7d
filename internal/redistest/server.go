package redistest

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	startTimeout = 20 * time.Second
	pollInterval = 5 * time.Millisecond
)

// A Server is one private redis-server process. Its methods fail the test when they
// cannot do what they say. They may be used by one goroutine at a time.
type Server struct {
	t    testing.TB
	bin  string
	args []string
	dir  string
	port int

	cmd     *exec.Cmd
	exited  chan struct{} // closed when cmd has ended
	watcher *watcher
	log     *bytes.Buffer
}

// Start starts a server that keeps nothing on disk, with further settings as on the
// command line, such as "--maxclients", "10". It listens on a free port of the loopback
// interface and on a socket.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	s := newServer(t, settings...)
	s.start()
	return s
}

// URL returns the address of a server that the test may use, but not alone: the one of
// RESILIENCE_TEST_REDIS if it is set, otherwise a private one.
func URL(t testing.TB) string {
	t.Helper()
	if url := os.Getenv("RESILIENCE_TEST_REDIS"); url != "" {
		return url
	}
	return Start(t).URL()
}

func newServer(t testing.TB, settings ...string) *Server {
	t.Helper()
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		const how = "no redis-server on the PATH (Debian: apt-get install redis-server; macOS: brew install redis)"
		if os.Getenv("RESILIENCE_REQUIRE_REDIS") == "1" {
			t.Fatal(how)
		}
		t.Skip(how)
	}
	// Not t.TempDir: the path of a socket must be short.
	dir, err := os.MkdirTemp("", "redis")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, bin: bin, dir: dir, port: freePort(t)}
	s.args = append([]string{
		"--bind", "127.0.0.1", "--port", strconv.Itoa(s.port), "--unixsocket", s.Socket(),
		"--dir", dir, "--save", "", "--appendonly", "no", "--daemonize", "no",
		"--repl-diskless-sync-delay", "0",
	}, settings...)
	t.Cleanup(func() {
		s.Kill()
		os.RemoveAll(dir)
	})
	return s
}

// freePort returns a port that nobody listens on. Somebody may before the server
// does; start then says so.
func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func (s *Server) start() {
	s.t.Helper()
	s.log = new(bytes.Buffer)
	s.cmd = exec.Command(s.bin, s.args...)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatalf("starting redis-server: %v", err)
	}
	exited := make(chan struct{})
	s.exited = exited
	cmd := s.cmd
	go func() {
		defer close(exited)
		_ = cmd.Wait()
	}()
	s.watcher = watch(s.t, s.cmd.Process.Pid)
	for deadline := time.Now().Add(startTimeout); ; time.Sleep(pollInterval) {
		if pong, err := s.do("PING"); err == nil && pong == "PONG" {
			return
		}
		select {
		case <-exited:
			s.t.Fatalf("redis-server ended at once:\n%s", s.log)
		default:
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("redis-server does not answer after %v", startTimeout)
		}
	}
}

// Addr returns the host and port.
func (s *Server) Addr() string { return "127.0.0.1:" + strconv.Itoa(s.port) }

// Socket returns the path of the Unix socket.
func (s *Server) Socket() string { return filepath.Join(s.dir, "redis.sock") }

// URL returns the address over TCP, as redis://host:port.
func (s *Server) URL() string { return "redis://" + s.Addr() }

// Kill ends the process at once, as a crash would (SIGKILL). A server that does not
// run is left alone.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

// Stop ends the process in an orderly way (SIGTERM).
func (s *Server) Stop() { s.end(syscall.SIGTERM) }

func (s *Server) end(sig syscall.Signal) {
	if s.cmd == nil {
		return
	}
	s.watcher.stop()
	_ = s.cmd.Process.Signal(sig)
	_ = s.cmd.Process.Signal(syscall.SIGCONT)
	<-s.exited
	s.cmd = nil
}

// Restart starts the server again, after Kill or Stop, at the same address and with
// nothing in it.
func (s *Server) Restart() {
	s.t.Helper()
	if s.cmd != nil {
		s.t.Fatal("Restart of a server that is running")
	}
	s.start()
}

// Pause stops the process where it is (SIGSTOP): connections are still accepted, by the
// kernel, and nothing is answered until Resume.
func (s *Server) Pause() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		s.t.Fatal(err)
	}
}

// Resume lets a paused process go on.
func (s *Server) Resume() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		s.t.Fatal(err)
	}
}

// Do sends one command over a connection of its own and returns the answer: a string,
// an int64, nil or a []any of these. An error in the answer fails the test.
func (s *Server) Do(args ...string) any {
	s.t.Helper()
	reply, err := s.do(args...)
	if err != nil {
		s.t.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
	return reply
}

func (s *Server) do(args ...string) (any, error) {
	conn, err := net.DialTimeout("tcp", s.Addr(), time.Second)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	return roundTrip(conn, args)
}

// Stats returns a number of the INFO command, such as "total_commands_processed".
func (s *Server) Stats(field string) int64 {
	s.t.Helper()
	info, _ := s.Do("INFO", "everything").(string)
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), field+":"); ok {
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				s.t.Fatalf("INFO: %s is %q", field, value)
			}
			return n
		}
	}
	s.t.Fatalf("INFO has no %s", field)
	return 0
}

// Calls returns how often a command was executed, inside scripts too: the calls of
// INFO commandstats. The name is in lower case.
func (s *Server) Calls(command string) int64 {
	s.t.Helper()
	info, _ := s.Do("INFO", "commandstats").(string)
	for line := range strings.Lines(info) {
		if stats, ok := strings.CutPrefix(line, "cmdstat_"+command+":calls="); ok {
			calls, _, _ := strings.Cut(stats, ",")
			n, err := strconv.ParseInt(calls, 10, 64)
			if err != nil {
				s.t.Fatalf("INFO commandstats: %s", line)
			}
			return n
		}
	}
	return 0
}

// eventually waits for what a group of servers must agree on.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(startTimeout); !ok(); time.Sleep(pollInterval) {
		if time.Now().After(deadline) {
			t.Fatalf("after %v still not: %s", startTimeout, what)
		}
	}
}

// A watcher is a small process that ends another one when this process is gone, for
// whatever reason: a test that times out runs no cleanup.
type watcher struct {
	cmd *exec.Cmd
}

func watch(t testing.TB, pid int) *watcher {
	t.Helper()
	// The read returns when the other end of the pipe is closed, as it is by the death of
	// the process that holds it.
	cmd := exec.Command("/bin/sh", "-c", "read _; kill -9 $0 2>/dev/null", strconv.Itoa(pid))
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(fmt.Errorf("starting the watcher of redis-server: %w", err))
	}
	return &watcher{cmd: cmd}
}

// stop ends the watcher first: the process id may soon be another's.
func (w *watcher) stop() {
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait()
}
