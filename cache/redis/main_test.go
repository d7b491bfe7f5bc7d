package redis_test

import (
	"context"
	"os"
	"testing"

	driver "github.com/redis/go-redis/v9"
)

// quiet drops what the driver logs about connections that a test has cut.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	driver.SetLogger(quiet{})
	os.Exit(m.Run())
}
