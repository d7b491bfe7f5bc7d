package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
)

// A fleet is the worker processes: this program again, told by its environment that it
// is a worker.
type fleet struct{ ended sync.WaitGroup }

func startFleet(ctx context.Context, storeURL, hostURL string, s *show) (*fleet, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	f := &fleet{}
	for n := range workers {
		cmd := exec.CommandContext(ctx, self)
		cmd.Env = append(os.Environ(), storeVariable+"="+storeURL, hostVariable+"="+hostURL)
		trouble := &bytes.Buffer{} // what a client logs while its server is away, mostly
		cmd.Stderr = trouble
		stdin, err := cmd.StdinPipe()
		if err != nil {
			return f, err
		}
		cmd.Cancel = stdin.Close // the worker ends with its input
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			return f, err
		}
		if err := cmd.Start(); err != nil {
			return f, fmt.Errorf("start a worker: %w", err)
		}
		f.ended.Go(func() {
			listen(stdout, func(r report) { s.hear(n, r) })
			if err := cmd.Wait(); err != nil && ctx.Err() == nil {
				s.event(fmt.Sprintf("worker %d has failed: %v: %s", n+1, err, trouble))
			}
		})
	}
	f.ended.Go(func() { s.play(ctx) })
	return f, nil
}

// wait returns when all workers have ended.
func (f *fleet) wait() { f.ended.Wait() }

func listen(from io.Reader, hear func(report)) {
	for lines := bufio.NewScanner(from); lines.Scan(); {
		var r report
		if json.Unmarshal(lines.Bytes(), &r) == nil {
			hear(r)
		}
	}
}
