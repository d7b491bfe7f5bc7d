package redis

import (
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Open returns a cache over a client of its own, made from a URL:
//
//	redis://user:password@host:6379/0          one server, and the number of the database
//	rediss://host:6379                         the same over TLS
//	unix://user:password@/run/redis.sock?db=1  the same over a socket
//	redis+sentinel://host1:26379,host2:26379,host3:26379/0?master_name=main
//	redis+cluster://host1:6379,host2:6379,host3:6379
//
// The last two have a rediss+ form as well. User and password are the server's; those of
// the sentinels are the parameters sentinel_username and sentinel_password. Of a cluster,
// any few nodes do. The parameters of go-redis's own URLs, such as pool_size, may be
// added. Those without a value here are given time limits that suit an operation of
// Config.Timeout: a dial of 1 s, made once, and reads and writes of no less than 1 s, which
// end earlier with the operation. The client sends again what was not answered, up to
// three times within the Timeout.
//
// Open makes no connection, so that a process can start while Redis is away.
func Open(rawURL string, cfg Config) (*Cache, error) {
	client, err := open(rawURL, cfg)
	if err != nil {
		return nil, err
	}
	c, err := New(client, cfg)
	if err != nil {
		client.Close()
		return nil, err
	}
	c.owned = true
	return c, nil
}

// Time limits of a client that Open makes.
const (
	dialTimeout = time.Second
	readTimeout = time.Second
)

func open(rawURL string, cfg Config) (redis.UniversalClient, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		// The error of url.Parse quotes the URL, and with it the password.
		return nil, fmt.Errorf("redis: the URL cannot be parsed")
	}
	scheme, topology, _ := strings.Cut(u.Scheme, "+")
	if scheme != "redis" && scheme != "rediss" && u.Scheme != "unix" {
		return nil, fmt.Errorf("redis: the URL's scheme is %q, want redis, rediss or unix, or redis+sentinel or redis+cluster", u.Scheme)
	}
	if err := checkCounts(u.Query()); err != nil {
		return nil, err
	}
	u.Scheme = scheme
	slow := max(readTimeout, cfg.Timeout)

	switch topology {
	case "":
		o, err := redis.ParseURL(u.String())
		if err != nil {
			return nil, fmt.Errorf("redis: %w", err)
		}
		o.ContextTimeoutEnabled = true
		o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
		limits(&o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout, &o.DialerRetries, slow)
		return redis.NewClient(o), nil
	case "sentinel":
		o, err := redis.ParseFailoverURL(addrs(u))
		if err != nil {
			return nil, fmt.Errorf("redis: %w", err)
		}
		if o.MasterName == "" {
			return nil, fmt.Errorf("redis: the URL has no master_name, want the name that the sentinels know the master by")
		}
		if o.ReplicaOnly || o.RouteByLatency || o.RouteRandomly {
			return nil, errReplicas // of which the driver panics, or says nothing to New
		}
		o.ContextTimeoutEnabled = true
		limits(&o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout, &o.DialerRetries, slow)
		return redis.NewFailoverClient(o), nil
	case "cluster":
		o, err := redis.ParseClusterURL(addrs(u))
		if err != nil {
			return nil, fmt.Errorf("redis: %w", err)
		}
		o.ContextTimeoutEnabled = true
		o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
		limits(&o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout, &o.DialerRetries, slow)
		return redis.NewClusterClient(o), nil
	default:
		return nil, fmt.Errorf("redis: the URL's scheme ends in %q, want sentinel or cluster", topology)
	}
}

// counts are the parameters that the driver panics at if they are out of range, or that
// make it send nothing at all, with the least that means something.
var counts = []struct {
	name  string
	least int
}{
	{"pool_size", 0}, {"min_idle_conns", 0}, {"max_idle_conns", 0}, {"max_active_conns", 0},
	{"max_retries", -1}, {"max_redirects", -1},
}

func checkCounts(q url.Values) error {
	for _, c := range counts {
		n, err := strconv.Atoi(q.Get(c.name))
		if err == nil && (n < c.least || n > math.MaxInt32) {
			return fmt.Errorf("redis: the URL's %s is %d, want %d to %d", c.name, n, c.least, math.MaxInt32)
		}
	}
	return nil
}

// addrs returns the URL with all hosts but the first as parameters, as the driver wants
// them.
func addrs(u *url.URL) string {
	hosts := strings.Split(u.Host, ",")
	u.Host = hosts[0]
	q := u.Query()
	for _, h := range hosts[1:] {
		q.Add("addr", h)
	}
	u.RawQuery = q.Encode()
	return u.String()
}

func limits(dial, read, write *time.Duration, dials *int, slow time.Duration) {
	set := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	set(dial, dialTimeout)
	set(read, slow)
	set(write, slow)
	if *dials == 0 {
		*dials = 1
	}
}
