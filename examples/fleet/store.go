package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// A store is the Redis that the workers share.
type store struct {
	url   string
	start func() error // nil if it is somebody else's, as is kill
	kill  func() error
	close func()
}

var errNoRedis = errors.New("found no redis-server: install it (Debian: apt-get install redis-server, " +
	"macOS: brew install redis), or set REDIS_URL, for instance to redis://localhost:6379")

// findStore starts a private Redis that keeps nothing on disk or, if there is no
// redis-server, takes the one of REDIS_URL.
func findStore() (*store, error) {
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		if url := os.Getenv("REDIS_URL"); url != "" {
			return &store{url: url, close: func() {}}, nil
		}
		return nil, errNoRedis
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "fleet")
	if err != nil {
		return nil, err
	}
	var process *exec.Cmd
	s := &store{url: "redis://127.0.0.1:" + port}
	s.start = func() error {
		process = exec.Command(binary, "--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "no")
		if err := process.Start(); err != nil {
			return fmt.Errorf("start %s: %w", binary, err)
		}
		return reachable("127.0.0.1:" + port)
	}
	s.kill = func() error {
		err := process.Process.Kill()
		_ = process.Wait()
		return err
	}
	s.close = func() {
		_ = s.kill() // a second time does nothing
		_ = os.RemoveAll(dir)
	}
	if err := s.start(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), nil
}

func reachable(addr string) error {
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			return conn.Close()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("redis-server does not answer: %w", err)
		}
	}
}
