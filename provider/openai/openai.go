// Package openai is a language model behind OpenAI's chat completions, as the vendor
// serves them and as llama.cpp, vLLM, Ollama and many a gateway imitate them. It is a
// [provider.LLM] over the vendor's SDK, and a module of its own, so that nobody
// carries that SDK who does not use it.
//
// The answer's form is asked for (response_format json_schema), strictly wherever the
// schema can be put that way, and judged by [provider.Gate] all the same, since a host
// may ignore what it is asked. A model's reasoning is kept apart from its answer, in
// whichever of the usual places a host puts it.
//
// There is one request per call. The SDK's own retries are off, a redirect is followed
// within the host only and only as the request it is (307 and 308), and nothing is read from the environment: a key
// that lies around there must not be sent to whatever host a program talks to.
//
// # Zero values and concurrency
//
// The zero [Config] lacks nothing but a key. An [LLM] comes from [New] and may be used
// by any number of goroutines at once. It keeps nothing about calls.
//
// # Errors
//
// Those of [provider.LLM]. What this vendor's codes mean decides what a
// [provider.HostError] says: an exhausted quota is told from a passing rate limit,
// though both are a 429, and a request that is too long from any other bad one; a
// content filter's verdict is a [provider.RefusedCompletionError], in whichever of its
// two shapes it comes. A body that is no completion, a proxy's page under a status of
// 200 for instance, is a [provider.MalformedCompletionError] with that status; an
// error object under a status of 200 is a HostError like any other. The vendor's error
// is inside, as an *openai.Error of the SDK, without credentials. Space and a byte order
// mark around a body are forgiven. The key is
// taken out of whatever the host sends back before that gets into an error or to
// Config.OnCompletion; an answer that can be used stays as the model gave it.
//
// 409 and 425 are worth another try (see [provider.StatusError]), as this vendor
// answers the former for a lock it could not get. If the host says whether to try
// again (x-should-retry), its word counts. How long it asks to be left alone is read by
// [httptransport.RetryAfter].
package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"github.com/resilience-toolkit/resilience"
	"github.com/resilience-toolkit/resilience/provider"
)

// DefaultBaseURL is the address of the vendor's own host.
const DefaultBaseURL = "https://api.openai.com/v1/"

const (
	defaultMaxOutput = 8192
	defaultTimeout   = 10 * time.Minute
)

// A Config says which host to talk to, and how. Printing one, in whatever format,
// does not print its key; within an unexported field of something else it does, as fmt
// asks nobody about those.
type Config struct {
	// APIKey is the credential, sent as a bearer token. Empty means none, which the
	// vendor's own host does not accept.
	APIKey string

	// BaseURL is the host's address up to and including its version, such as
	// "http://localhost:8080/v1", to which "/chat/completions" is added. Empty means
	// [DefaultBaseURL].
	BaseURL string

	// Provider is the half of the model's name that says who serves it, such as
	// "ollama". Empty means "openai", and goes with an empty BaseURL only: who it is
	// elsewhere, only the caller knows.
	Provider string

	// MaxOutput is the output budget of a call in tokens, reasoning included. Zero means
	// 8192: too small a budget is a failed call, too large a one costs nothing. It is sent
	// as max_completion_tokens to the vendor's own host, whose newer models take no other,
	// and as max_tokens elsewhere, which every imitator knows; see Fields for a host that
	// differs.
	MaxOutput int

	// Timeout is how long a call may take before the host counts as one that hangs
	// ([provider.TimedOut]). Zero means ten minutes, since a slow model may well need a
	// few. The caller's context ends a call too, and that is not the host's fault.
	Timeout time.Duration

	// Fields are fields of the request body, by the names the host has for them, such as
	// "temperature". One that the adapter sets itself is replaced, and left out if the
	// value is nil. A host that does not know json_schema, for instance, needs
	// "response_format": nil, and a prompt that says what the JSON should look like. The
	// values must be what encoding/json takes, and must not be changed afterwards.
	Fields map[string]any

	// HTTPClient makes the requests. Nil means one with a connection pool of this LLM's
	// own. Of one that is given a copy is used that follows redirects as the package
	// comment says.
	HTTPClient *http.Client

	// OnCompletion, if not nil, is told of each completion before it is judged: what it
	// used, what the model thought, which model answered. It gets the caller's context
	// and runs in the caller's goroutine.
	OnCompletion func(ctx context.Context, c provider.Completion)
}

// Format implements [fmt.Formatter], without the key.
func (c Config) Format(s fmt.State, verb rune) {
	type plain Config
	if c.APIKey != "" {
		c.APIKey = "[key]"
	}
	fmt.Fprintf(s, fmt.FormatString(s, verb), plain(c))
}

// An LLM is one model at one host.
type LLM struct {
	name         string // as Model returns it
	model        string // as the host knows it
	hide         hider
	maxOutput    int
	timeout      time.Duration
	budgetField  string
	fields       map[string]any
	onCompletion func(context.Context, provider.Completion)
	chat         openai.ChatCompletionService
}

var _ provider.LLM = (*LLM)(nil)

// New returns the model that the host knows by that name, which must hold its version:
// Config.Provider, a slash and the name must pass [provider.CheckModel]. It makes no
// request. Make one for each model and share it, since it has connections to keep. An
// error names the field of cfg, and its value unless that is the key.
func New(model string, cfg Config) (*LLM, error) {
	base, err := cfg.baseURL()
	if err != nil {
		return nil, err
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	host := cfg.Provider
	if host == "" {
		host = "openai"
	}
	l := &LLM{
		name:         host + "/" + model,
		model:        model,
		hide:         hide(cfg.APIKey),
		maxOutput:    cfg.MaxOutput,
		timeout:      cfg.Timeout,
		budgetField:  "max_tokens", // the name that every imitator knows
		fields:       map[string]any{},
		onCompletion: cfg.OnCompletion,
	}
	if err := provider.CheckModel(l.name); err != nil {
		return nil, fmt.Errorf("openai: %w", err)
	}
	if l.maxOutput == 0 {
		l.maxOutput = defaultMaxOutput
	}
	if l.timeout == 0 {
		l.timeout = defaultTimeout
	}
	if strings.EqualFold(base.Hostname(), "api.openai.com") {
		l.budgetField = "max_completion_tokens" // the only one its newer models take
	}
	for name, value := range cfg.Fields {
		if value == nil {
			value = param.Omit
		}
		l.fields[name] = value
	}
	options := []option.RequestOption{
		option.WithBaseURL(base.String()),
		option.WithMaxRetries(0),
		option.WithHTTPClient(httpClient(cfg.HTTPClient)),
	}
	if cfg.APIKey != "" {
		options = append(options, option.WithAPIKey(cfg.APIKey))
	}
	// The service, and not a client: the client takes its defaults from the environment.
	l.chat = openai.NewChatCompletionService(options...)
	return l, nil
}

func (c Config) baseURL() (*url.URL, error) {
	if c.BaseURL == "" {
		if c.APIKey == "" {
			return nil, errors.New("openai: APIKey is empty, want the key that " + DefaultBaseURL + " asks for")
		}
		return url.Parse(DefaultBaseURL)
	}
	bad := func(want string) error {
		return fmt.Errorf("openai: BaseURL is %q, want %s", hide(c.APIKey)(redactedURL(c.BaseURL)), want)
	}
	u, err := url.Parse(c.BaseURL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, bad(`an http or https address such as "http://localhost:8080/v1"`)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, bad("one without user, query and fragment")
	case strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/chat/completions"):
		return nil, bad("one that ends before /chat/completions")
	case c.Provider == "":
		return nil, fmt.Errorf("openai: Provider is empty, want the name of who serves %s", u)
	}
	return u.JoinPath(), nil // which is without empty segments
}

// redactedURL leaves out the parts of an address in which credentials travel.
func redactedURL(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return "not an address"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

func (c Config) check() error {
	switch {
	case strings.ContainsFunc(c.APIKey, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) || r > unicode.MaxASCII }):
		return errors.New("openai: APIKey holds a space, a line break or another character that no key has")
	case strings.Contains(c.Provider, "/"):
		return fmt.Errorf("openai: Provider is %q, want one without a slash", c.Provider)
	case c.MaxOutput < 0:
		return fmt.Errorf("openai: MaxOutput is %d, want 1 or more, or 0 for %d", c.MaxOutput, defaultMaxOutput)
	case c.Timeout < 0:
		return fmt.Errorf("openai: Timeout is %v, want above zero, or 0 for %v", c.Timeout, defaultTimeout)
	}
	if _, err := json.Marshal(c.Fields); err != nil {
		return fmt.Errorf("openai: Fields: %w", err)
	}
	return nil
}

// httpClient returns a copy of given that stays within the host, and sends no request
// without its body to a place that answers another.
func httpClient(given *http.Client) *http.Client {
	client := http.Client{}
	if given != nil {
		client = *given
	} else if t, ok := http.DefaultTransport.(*http.Transport); ok {
		t = t.Clone()
		t.MaxIdleConnsPerHost = t.MaxIdleConns // there is only one host
		client.Transport = t
	}
	client.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		elsewhere := next.URL.Scheme != via[0].URL.Scheme || next.URL.Host != via[0].URL.Host
		if len(via) >= 5 || elsewhere || next.Method != via[0].Method {
			return http.ErrUseLastResponse // which is then judged by its status
		}
		return nil
	}
	return &client
}

// Model returns the provider's name, a slash and the model's.
func (l *LLM) Model() string { return l.name }

// Complete implements [provider.LLM].
func (l *LLM) Complete(ctx context.Context, r provider.Request) (json.RawMessage, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	if err := resilience.ContextError(ctx); err != nil {
		return nil, err
	}
	params, err := l.params(r)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	x := exchange{hide: l.hide, schema: r.Schema.Name()}
	answer, err := l.chat.New(limited, params, option.WithMiddleware(x.middleware))
	switch {
	case ctx.Err() != nil && err != nil:
		return nil, resilience.ContextError(ctx)
	case x.err != nil:
		return nil, x.err
	case err != nil:
		return nil, l.failure(limited, &x, err)
	}
	c, err := x.completion(answer)
	if err != nil {
		return nil, err
	}
	c.MaxOutput = l.maxOutput
	shown := l.hide.completion(c)
	if l.onCompletion != nil {
		l.onCompletion(ctx, shown)
	}
	if raw, err := provider.Gate(c, r.Schema); err == nil {
		return raw, nil // as the model said it, for a short key may be a word of it
	}
	return provider.Gate(shown, r.Schema)
}

func (l *LLM) params(r provider.Request) (openai.ChatCompletionNewParams, error) {
	schema, strict, err := wireSchema(r.Schema)
	if err != nil {
		return openai.ChatCompletionNewParams{}, fmt.Errorf("openai: schema %q: %w", r.Schema.Name(), err)
	}
	p := openai.ChatCompletionNewParams{
		Model: l.model,
		ResponseFormat: openai.ChatCompletionNewParamsResponseFormatUnion{
			OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{
				JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
					Name:   r.Schema.Name(),
					Schema: schema,
					Strict: openai.Bool(strict),
				},
			},
		},
	}
	if r.System != "" {
		p.Messages = append(p.Messages, openai.SystemMessage(r.System))
	}
	p.Messages = append(p.Messages, openai.UserMessage(r.Text))
	extra := map[string]any{l.budgetField: l.maxOutput}
	for name, value := range l.fields {
		extra[name] = value
	}
	p.SetExtraFields(extra)
	return p, nil
}
