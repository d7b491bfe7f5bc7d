package provider_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/provider"
)

func TestClassifyTellsTheHostsFailuresFromEverybodyElses(t *testing.T) {
	alive := t.Context()
	left, cancel := context.WithCancel(alive)
	cancel()
	late, cancel := context.WithTimeout(alive, 0)
	defer cancel()

	reset := &provider.HostError{Kind: provider.Disconnected, Transient: true, Err: io.ErrUnexpectedEOF}
	for name, test := range map[string]struct {
		ctx  context.Context
		err  error
		want breaker.Outcome
	}{
		"an answer":                          {alive, nil, breaker.Success},
		"an empty completion":                {alive, &provider.EmptyCompletionError{}, breaker.Success},
		"a truncated completion":             {alive, &provider.TruncatedCompletionError{}, breaker.Success},
		"a refusal of the model":             {alive, &provider.RefusedCompletionError{}, breaker.Success},
		"a malformed completion":             {alive, &provider.MalformedCompletionError{Err: io.EOF}, breaker.Success},
		"a filter's verdict":                 {alive, &provider.RefusedCompletionError{Completion: provider.Completion{Finish: provider.FinishFiltered}}, breaker.Neutral},
		"400":                                {alive, provider.StatusError(400), breaker.Neutral},
		"401":                                {alive, provider.StatusError(401), breaker.Neutral},
		"403":                                {alive, provider.StatusError(403), breaker.Neutral},
		"404":                                {alive, provider.StatusError(404), breaker.Neutral},
		"409":                                {alive, provider.StatusError(409), breaker.Neutral},
		"413":                                {alive, provider.StatusError(413), breaker.Neutral},
		"422":                                {alive, provider.StatusError(422), breaker.Neutral},
		"429":                                {alive, provider.StatusError(429), breaker.Neutral},
		"an exhausted quota":                 {alive, provider.StatusError(402), breaker.Neutral},
		"a redirect":                         {alive, provider.StatusError(302), breaker.Neutral},
		"408":                                {alive, provider.StatusError(408), breaker.Failure},
		"500":                                {alive, provider.StatusError(500), breaker.Failure},
		"501":                                {alive, provider.StatusError(501), breaker.Failure},
		"503":                                {alive, provider.StatusError(503), breaker.Failure},
		"504":                                {alive, provider.StatusError(504), breaker.Failure},
		"529":                                {alive, provider.StatusError(529), breaker.Failure},
		"a broken connection":                {alive, reset, breaker.Failure},
		"an error of no kind":                {alive, &provider.HostError{}, breaker.Failure},
		"anybody's error":                    {alive, errors.New("?"), breaker.Failure},
		"a refusal made here":                {alive, resilience.ErrRejected, breaker.Neutral},
		"a refusal, as a disconnect":         {alive, &provider.HostError{Kind: provider.Disconnected, Transient: true, Err: resilience.ErrRejected}, breaker.Neutral},
		"blank text":                         {alive, &provider.RequestError{Field: "Text"}, breaker.Neutral},
		"a caller who left":                  {left, resilience.ContextError(left), breaker.Neutral},
		"a caller who left, in other words":  {left, errors.New("use of closed connection"), breaker.Neutral},
		"a caller who left, as a disconnect": {left, reset, breaker.Neutral},
		"a caller who left after an answer":  {left, provider.StatusError(503), breaker.Failure},
		"a deadline":                         {late, resilience.ContextError(late), breaker.Failure},
		"a deadline, as a disconnect":        {late, reset, breaker.Failure},
	} {
		assert.Equal(t, test.want, provider.Classify(test.ctx, test.err), name)
		if test.err != nil {
			assert.Equal(t, test.want, provider.Classify(test.ctx, fmt.Errorf("wrapped: %w", test.err)), name)
		}
	}
}

func TestTheOutcomeOfARateLimitCanBeSet(t *testing.T) {
	for _, want := range []breaker.Outcome{breaker.Success, breaker.Failure, breaker.Neutral} {
		classify := provider.ClassifyRateLimit(want)
		assert.Equal(t, want, classify(t.Context(), provider.StatusError(429)))
		assert.Equal(t, breaker.Failure, classify(t.Context(), provider.StatusError(503)), "and nothing else changes")
		assert.Equal(t, breaker.Neutral, classify(t.Context(), provider.StatusError(402)))
		assert.Equal(t, breaker.Success, classify(t.Context(), nil))
	}
}
