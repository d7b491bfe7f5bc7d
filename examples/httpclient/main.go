// Command httpclient puts the toolkit under an SDK that knows nothing of it.
//
// The SDK is go-github, as it comes. It takes an http.Client, so the whole chain is
// in the client's transport: a circuit per host, a retry, and a time limit for each
// attempt. The API is a server on the loopback interface that has a bad day.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/google/go-github/v75/github"
	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/breaker"
	"github.com/resilience-toolkit/resilience/httptransport"
	"github.com/resilience-toolkit/resilience/retry"
	"github.com/resilience-toolkit/resilience/timeout"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// newClient returns a client whose requests go through the chain.
func newClient(out io.Writer) (*http.Client, error) {
	circuits, err := httptransport.PerHost(func(host string) (resilience.Policy, error) {
		return breaker.New(breaker.Config{
			Name:             host,
			FailureThreshold: 2,
			Classify:         httptransport.Classify,
		})
	}, httptransport.PerHostConfig{})
	if err != nil {
		return nil, err
	}
	again, err := retry.New(httptransport.Retryable, retry.Config{
		MaxAttempts: 3,
		Backoff:     retry.Exponential{Base: 10 * time.Millisecond, Max: time.Second},
		OnRetry: func(_ context.Context, e retry.Event) {
			fmt.Fprintf(out, "    attempt %d failed with %d, again in %v\n", e.Attempt, httptransport.StatusOf(e.Err), e.Delay)
		},
	})
	if err != nil {
		return nil, err
	}
	each, err := timeout.New(5 * time.Second)
	if err != nil {
		return nil, err
	}
	return &http.Client{
		Transport: httptransport.New(nil, httptransport.Config{}, circuits, again, each),
	}, nil
}

func run(ctx context.Context, out io.Writer) error {
	api := newServer()
	defer api.Close()
	client, err := newClient(out)
	if err != nil {
		return err
	}
	sdk := github.NewClient(client)
	if sdk.BaseURL, err = url.Parse(api.URL + "/"); err != nil {
		return err
	}

	fmt.Fprintln(out, "Two failures, the first of which says when to come back:")
	api.next(answer{status: 429, retryAfterMs: "50"}, answer{status: 503}, answer{status: 200, body: `{"stargazers_count": 42}`})
	repo, _, err := sdk.Repositories.Get(ctx, "octo", "toolkit")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "    %d stars; requests: %d\n", repo.GetStargazersCount(), api.served())

	fmt.Fprintln(out, "What is not there is the caller's affair, and asked for once:")
	api.next(answer{status: 404, body: `{"message": "Not Found"}`})
	_, _, err = sdk.Repositories.Get(ctx, "octo", "nothing")
	tell(out, api, err)

	fmt.Fprintln(out, "A POST is not sent twice; the SDK gets the response as always:")
	api.next(answer{status: 503, body: `{"message": "unavailable"}`})
	_, _, err = sdk.Issues.Create(ctx, "octo", "toolkit", &github.IssueRequest{Title: github.Ptr("A title")})
	tell(out, api, err)

	fmt.Fprintln(out, "A host that stays down gets three requests, and then none:")
	api.next(answer{status: 502}, answer{status: 502}, answer{status: 502})
	for range 2 {
		_, _, err = sdk.Repositories.Get(ctx, "octo", "toolkit")
		tell(out, api, err)
	}
	return nil
}

// tell says how a call ended, in the SDK's terms or in the toolkit's.
func tell(out io.Writer, api *server, err error) {
	if response, ok := errors.AsType[*github.ErrorResponse](err); ok {
		fmt.Fprintf(out, "    the SDK's error, status %d; requests: %d\n", response.Response.StatusCode, api.served())
		return
	}
	if open, ok := errors.AsType[*breaker.OpenError](err); ok {
		fmt.Fprintf(out, "    refused, the circuit is %v; requests: %d\n", open.State, api.served())
		return
	}
	fmt.Fprintf(out, "    %v\n", err)
}
