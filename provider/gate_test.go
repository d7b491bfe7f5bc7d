package provider_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/provider"
)

func schemaOf[T any](t testing.TB) *provider.Schema {
	t.Helper()
	s, err := provider.SchemaOf[T]()
	require.NoError(t, err)
	return s
}

func said(text string) provider.Completion {
	return provider.Completion{Text: text, Finish: provider.FinishStop}
}

func TestGateForgivesWhatDoesNotChangeTheAnswer(t *testing.T) {
	s := schemaOf[invoice](t)
	for name, text := range map[string]string{
		"plain":               whole,
		"space":               " \r\n\t" + whole + "\n\n",
		"byte order mark":     "\ufeff" + whole,
		"fence":               "```\n" + whole + "\n```",
		"fence with a name":   "```json\n" + whole + "\n```\n",
		"fence, carriage":     "```json\r\n" + whole + "\r\n```",
		"fence without break": "```json\n" + whole + "```",
		"longer fence":        "````json\n" + whole + "\n````",
		"fence of tildes":     "~~~json\n" + whole + "\n~~~",
		"mark in a fence":     "```json\n\ufeff" + whole + "\n```",
	} {
		got, err := provider.Gate(said(text), s)
		require.NoError(t, err, name)
		assert.JSONEq(t, whole, string(got), name)
	}
	// A host that does not say why it stopped, or says it in its own words.
	for _, finish := range []provider.Finish{"", "eos"} {
		_, err := provider.Gate(provider.Completion{Text: whole, Finish: finish}, s)
		require.NoError(t, err)
	}
}

func TestGateTellsTheFourErrorsApart(t *testing.T) {
	s := schemaOf[invoice](t)
	type c = provider.Completion
	empty, truncated := "empty", "truncated"
	refused, filtered, malformed := "refused", "filtered", "malformed"
	for name, test := range map[string]struct {
		c    provider.Completion
		want string
	}{
		"nothing":                           {c{Finish: provider.FinishStop}, empty},
		"nothing at all":                    {c{}, empty},
		"space":                             {said("  \n"), empty},
		"invisible":                         {said("\u200b\ufeff"), empty},
		"an empty fence":                    {said("```json\n```"), empty},
		"only reasoning":                    {c{Reasoning: whole, Finish: provider.FinishStop}, empty},
		"called a tool":                     {c{Finish: "tool_calls"}, empty},
		"budget spent on reasoning":         {c{Finish: provider.FinishLength}, truncated},
		"cut":                               {c{Text: whole[:20], Finish: provider.FinishLength}, truncated},
		"cut, and valid all the same":       {c{Text: whole, Finish: provider.FinishLength}, truncated},
		"cut, and no JSON":                  {c{Text: "ok", Finish: provider.FinishLength}, truncated},
		"declined":                          {c{Refusal: "I cannot.", Finish: provider.FinishStop}, refused},
		"declined without a word":           {c{Finish: provider.FinishRefused}, refused},
		"declined when the budget was up":   {c{Refusal: "I", Finish: provider.FinishLength}, refused},
		"filtered":                          {c{Finish: provider.FinishFiltered}, filtered},
		"filtered halfway":                  {c{Text: whole[:9], Finish: provider.FinishFiltered}, filtered},
		"filtered, and valid all the same":  {c{Text: whole, Finish: provider.FinishFiltered}, filtered},
		"prose":                             {said("Here you are."), malformed},
		"prose before":                      {said("Here you are: " + whole), malformed},
		"prose after":                       {said(whole + "\nAnything else?"), malformed},
		"two values":                        {said(whole + whole), malformed},
		"prose before a fence":              {said("Sure!\n```json\n" + whole + "\n```"), malformed},
		"JSON that breaks off":              {said(whole[:20]), malformed},
		"a fence with more than a name":     {said("```{\"x\":1}\n" + whole + "\n```"), malformed},
		"a fence that never ends":           {said("```json\n" + whole), malformed},
		"a fence that ends another":         {said("````json\n" + whole + "\n```"), malformed},
		"two ticks":                         {said("``\n" + whole + "\n``"), malformed},
		"no UTF-8":                          {said(strings.Replace(whole, `"number":"`, "\"number\":\"\xff", 1)), malformed},
		"a name that is there twice":        {said(`{"total":2,` + whole[1:]), malformed},
		"twice, spelled otherwise":          {said(`{"\u0074otal":2,` + whole[1:]), malformed},
		"a page":                            {said("<html><body>502</body></html>"), malformed},
		"single quotes":                     {said("{'number':'A-1'}"), malformed},
		"a comma too many":                  {said(`{"number":"A-1","total":1,"lines":[],}`), malformed},
		"another schema":                    {said(`{"name":"Ada"}`), malformed},
		"not a number":                      {said(`{"number":"A-1","total":NaN,"lines":[]}`), malformed},
		"nested beyond reason":              {said(strings.Repeat("[", 20000)), malformed},
		"a schema's text for an answer":     {said(string(s.JSON())), malformed},
		"the JSON as a string, twice coded": {said(`"{\"number\":\"A-1\"}"`), malformed},
	} {
		t.Run(name, func(t *testing.T) {
			test.c.Usage = provider.Usage{Input: 7, Output: 5, Reasoning: 3}
			raw, err := provider.Gate(test.c, s)
			assert.Nil(t, raw)
			require.ErrorIs(t, err, provider.ErrCompletion)
			var got string
			var carried provider.Completion
			switch e := err.(type) {
			case *provider.EmptyCompletionError:
				got, carried = empty, e.Completion
			case *provider.TruncatedCompletionError:
				got, carried = truncated, e.Completion
			case *provider.RefusedCompletionError:
				if got, carried = refused, e.Completion; e.Filtered() {
					got = filtered
				}
			case *provider.MalformedCompletionError:
				got, carried = malformed, e.Completion
			}
			assert.Equal(t, test.want, got, "%v", err)
			assert.Equal(t, test.c, carried, "all that the host said is in the error")
		})
	}
}

func TestACompletionErrorSaysWhatToDo(t *testing.T) {
	s := schemaOf[invoice](t)
	_, err := provider.Gate(provider.Completion{Finish: "tool_calls", Reasoning: "hm"}, s)
	assert.EqualError(t, err, `provider: completion is empty (finish reason "tool_calls"), the model only reasoned`)
	_, err = provider.Gate(provider.Completion{Finish: provider.FinishLength, MaxOutput: 200, Usage: provider.Usage{Reasoning: 199}}, s)
	assert.EqualError(t, err, `provider: completion is truncated at the limit of 200 output tokens, 199 of which went into reasoning, before the answer began`)
	_, err = provider.Gate(provider.Completion{Finish: provider.FinishFiltered}, s)
	assert.EqualError(t, err, `provider: completion was stopped by a content filter`)
	_, err = provider.Gate(provider.Completion{Refusal: "I can't."}, s)
	assert.EqualError(t, err, `provider: completion was refused by the model: "I can't."`)
	_, err = provider.Gate(said("Sure!"), s)
	assert.EqualError(t, err, `provider: completion does not match schema "invoice": invalid character 'S' looking for beginning of value; it begins "Sure!"`)
}

func TestACompletionErrorUnwrapsToItsCause(t *testing.T) {
	_, err := provider.Gate(said("Sure!"), schemaOf[invoice](t))
	_, ok := errors.AsType[*json.SyntaxError](err)
	assert.True(t, ok)

	vendor := errors.New("theirs")
	assert.ErrorIs(t, &provider.RefusedCompletionError{Err: vendor}, vendor)
	assert.ErrorIs(t, &provider.MalformedCompletionError{Err: vendor}, vendor)
	assert.EqualError(t, &provider.MalformedCompletionError{Status: 200, Snippet: "<html>", Err: vendor},
		`provider: response with status 200 is no completion: theirs; it begins "<html>"`)
}

// As a fake's answer, say.
func TestAnErrorThatIsNotFilledInHasAText(t *testing.T) {
	for _, err := range []error{
		&provider.EmptyCompletionError{}, &provider.TruncatedCompletionError{}, &provider.RefusedCompletionError{},
		&provider.MalformedCompletionError{}, &provider.HostError{}, &provider.RequestError{},
	} {
		assert.Regexp(t, `^provider: .`, err.Error())
	}
}

func TestAnErrorQuotesABoundedPart(t *testing.T) {
	s := schemaOf[invoice](t)
	for _, text := range []string{
		strings.Repeat("x", 1<<20),
		`{"number":"` + strings.Repeat("é", 1<<20) + `","total":"x","lines":[]}`,
		`{"number":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`,
		strings.Repeat("\xff", 1<<20),
	} {
		_, err := provider.Gate(said(text), s)
		bad, ok := errors.AsType[*provider.MalformedCompletionError](err)
		require.True(t, ok)
		assert.LessOrEqual(t, len(bad.Snippet), 256)
		assert.True(t, utf8.ValidString(bad.Snippet))
		assert.Less(t, len(err.Error()), 2500)
		assert.Equal(t, text, bad.Text, "the whole is in the field")
	}
	assert.Equal(t, "a short one", provider.Snippet("a short one"))
	assert.Equal(t, strings.Repeat("é", 126)+"…", provider.Snippet(strings.Repeat("é", 200)))
	assert.Equal(t, strings.Repeat("x", 253)+"…", provider.Snippet(strings.Repeat("x", 257)))
	assert.Equal(t, strings.Repeat("x", 256), provider.Snippet(strings.Repeat("x", 256)))
}

func FuzzGate(f *testing.F) {
	s := schemaOf[invoice](f)
	for _, text := range []string{whole, "```json\n" + whole + "\n```", "", "\ufeff", "```", "``````", "{}", "null", "`{`", "```\n```"} {
		f.Add(text, "stop", "")
	}
	f.Fuzz(func(t *testing.T, text, finish, refusal string) {
		raw, err := provider.Gate(provider.Completion{Text: text, Finish: provider.Finish(finish), Refusal: refusal}, s)
		if err != nil {
			assert.Nil(t, raw)
			assert.ErrorIs(t, err, provider.ErrCompletion)
			assert.Less(t, len(err.Error()), 5000)
			return
		}
		assert.True(t, json.Valid(raw))
		assert.NoError(t, s.Validate(raw))
		assert.Contains(t, text, string(raw), "nothing is made up")
	})
}
