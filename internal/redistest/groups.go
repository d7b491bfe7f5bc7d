package redistest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// A Group is a master with one replica, watched by three sentinels who fail over after
// half a second.
type Group struct {
	Name      string // what the sentinels call the master
	Servers   [2]*Server
	Sentinels [3]*Server
}

// Sentinel starts a group and waits until the sentinels know it and each other.
func Sentinel(t testing.TB) *Group {
	t.Helper()
	g := &Group{Name: "main"}
	g.Servers[0] = Start(t)
	g.Servers[1] = Start(t, "--replicaof", "127.0.0.1 "+strconv.Itoa(g.Servers[0].port))
	eventually(t, "the replica follows", func() bool {
		return strings.Contains(g.Servers[1].Do("INFO", "replication").(string), "master_link_status:up")
	})
	for i := range g.Sentinels {
		s := newServer(t)
		config := filepath.Join(s.dir, "sentinel.conf")
		text := fmt.Sprintf(`bind 127.0.0.1
port %d
dir %s
sentinel monitor %s 127.0.0.1 %d 2
sentinel down-after-milliseconds %s 500
sentinel failover-timeout %s 1000
`, s.port, s.dir, g.Name, g.Servers[0].port, g.Name, g.Name)
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s.args = []string{config, "--sentinel"}
		s.start()
		g.Sentinels[i] = s
	}
	for _, s := range g.Sentinels {
		eventually(t, "each sentinel knows the replica and the others", func() bool {
			info := s.Do("INFO", "sentinel").(string)
			return strings.Contains(info, "slaves=1,sentinels=3")
		})
	}
	return g
}

// Addrs returns the addresses of the sentinels.
func (g *Group) Addrs() []string {
	var list []string
	for _, s := range g.Sentinels {
		list = append(list, s.Addr())
	}
	return list
}

// Master returns the server that the first sentinel takes for the master.
func (g *Group) Master() *Server {
	s := g.Sentinels[0]
	s.t.Helper()
	addr := s.Do("SENTINEL", "get-master-addr-by-name", g.Name).([]any)
	for _, server := range g.Servers {
		if server.Addr() == net.JoinHostPort(addr[0].(string), addr[1].(string)) {
			return server
		}
	}
	s.t.Fatalf("the master %v is none of the group", addr)
	return nil
}

// Masters are the three nodes of a cluster without replicas.
type Masters struct {
	Servers [3]*Server
}

// Cluster starts a cluster of three masters and waits until all of them serve.
func Cluster(t testing.TB) *Masters {
	t.Helper()
	c := &Masters{}
	for i := range c.Servers {
		c.Servers[i] = Start(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000",
			"--cluster-port", strconv.Itoa(freePort(t)))
	}
	const slots = 16384
	for i, s := range c.Servers {
		s.Do("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		s.Do("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(i*slots/3), strconv.Itoa((i+1)*slots/3-1))
		if i > 0 {
			first := c.Servers[0]
			bus := s.Do("CONFIG", "GET", "cluster-port").([]any)[1].(string)
			first.Do("CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(s.port), bus)
		}
	}
	for _, s := range c.Servers {
		eventually(t, "each node serves, and knows all", func() bool {
			info := s.Do("CLUSTER", "INFO").(string)
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_size:3") &&
				strings.Contains(info, "cluster_known_nodes:3")
		})
	}
	return c
}

// Addrs returns the addresses of the masters.
func (c *Masters) Addrs() []string {
	var list []string
	for _, s := range c.Servers {
		list = append(list, s.Addr())
	}
	return list
}

// Slot returns the hash slot of a key.
func (c *Masters) Slot(key string) int64 {
	c.Servers[0].t.Helper()
	return c.Servers[0].Do("CLUSTER", "KEYSLOT", key).(int64)
}

// Owner returns the index of the master that serves a slot, as the first one sees it.
func (c *Masters) Owner(slot int64) int {
	first := c.Servers[0]
	first.t.Helper()
	for _, row := range first.Do("CLUSTER", "SLOTS").([]any) {
		r := row.([]any)
		if slot < r[0].(int64) || slot > r[1].(int64) {
			continue
		}
		port := r[2].([]any)[1].(int64)
		for i, s := range c.Servers {
			if int64(s.port) == port {
				return i
			}
		}
	}
	first.t.Fatalf("nobody serves slot %d", slot)
	return 0
}

// Move hands a slot and every key in it from one master to another.
func (c *Masters) Move(slot int64, from, to int) {
	src, dst := c.Servers[from], c.Servers[to]
	src.t.Helper()
	n := strconv.FormatInt(slot, 10)
	srcID, dstID := src.Do("CLUSTER", "MYID").(string), dst.Do("CLUSTER", "MYID").(string)
	dst.Do("CLUSTER", "SETSLOT", n, "IMPORTING", srcID)
	src.Do("CLUSTER", "SETSLOT", n, "MIGRATING", dstID)
	for {
		keys := src.Do("CLUSTER", "GETKEYSINSLOT", n, "100").([]any)
		if len(keys) == 0 {
			break
		}
		args := []string{"MIGRATE", "127.0.0.1", strconv.Itoa(dst.port), "", "0", "5000", "KEYS"}
		for _, key := range keys {
			args = append(args, key.(string))
		}
		src.Do(args...)
	}
	for _, s := range []*Server{dst, src, c.Servers[3-from-to]} {
		s.Do("CLUSTER", "SETSLOT", n, "NODE", dstID)
	}
}
