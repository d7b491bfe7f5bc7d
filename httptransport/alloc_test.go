package httptransport_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/httptransport"
)

func TestARequestAllocatesLittleBeyondWhatItsTransportDoes(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	base := roundTripper(func(req *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: http.NoBody, Request: req}, nil
	})
	req := get(t, "http://host.test/")
	allocs := func(transport http.RoundTripper) float64 {
		return testing.AllocsPerRun(100, func() {
			r, err := transport.RoundTrip(req)
			require.NoError(t, err)
			_ = r.Body.Close()
		})
	}
	bare := allocs(base)
	guarded := allocs(httptransport.New(base, httptransport.Config{}, attempts(t, 3, httptransport.Retryable)))
	t.Logf("bare %v, guarded %v", bare, guarded)
	assert.LessOrEqual(t, guarded-bare, 9.)
}
