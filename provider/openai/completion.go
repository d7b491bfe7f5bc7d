package openai

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/respjson"

	"github.com/resilience-toolkit/resilience/provider"
)

// completion puts the host's answer into the port's words.
func (x *exchange) completion(answer *openai.ChatCompletion) (provider.Completion, error) {
	if len(answer.Choices) == 0 {
		return provider.Completion{}, x.malformed(errors.New("there is no choice in it"))
	}
	choice := answer.Choices[0]
	if !choice.JSON.Message.Valid() {
		return provider.Completion{}, x.malformed(errors.New("there is no message in its choice"))
	}
	message := choice.Message
	text, thought := parts(message)
	for _, field := range []string{"reasoning_content", "reasoning"} {
		if s := stringIn(message.JSON.ExtraFields, field); thought == "" {
			thought = s
		}
	}
	if before, inside, after := cutThought(text); inside != "" && before == "" {
		text = after
		if thought == "" {
			thought = inside
		}
	}
	return provider.Completion{
		Text:      x.hide(text),
		Reasoning: x.hide(thought),
		Refusal:   x.hide(message.Refusal),
		Finish:    finish(x.hide(choice.FinishReason)),
		Model:     x.hide(answer.Model),
		Usage: provider.Usage{
			Input:     answer.Usage.PromptTokens,
			Output:    answer.Usage.CompletionTokens,
			Reasoning: answer.Usage.CompletionTokensDetails.ReasoningTokens,
		},
	}, nil
}

// finish translates the reasons that have several names among the hosts.
func finish(reason string) provider.Finish {
	switch reason {
	case "max_tokens", "model_length":
		return provider.FinishLength
	}
	return provider.Finish(reason)
}

// parts returns the answer's text, and the reasoning that is a part of the same list,
// for a host that sends its content as one.
func parts(m openai.ChatCompletionMessage) (text, thought string) {
	raw := m.JSON.Content.Raw()
	if !strings.HasPrefix(raw, "[") {
		return m.Content, ""
	}
	var list []struct {
		Type     string
		Text     string
		Thinking []struct{ Text string }
	}
	if json.Unmarshal([]byte(raw), &list) != nil {
		return raw, "" // for the gate to refuse
	}
	for _, p := range list {
		text += p.Text
		for _, t := range p.Thinking {
			thought += t.Text
		}
	}
	return text, thought
}

// cutThought splits off the reasoning that a host leaves in the text, between tags, if
// it does not parse what its model says. It may be left open when the budget is up.
func cutThought(text string) (before, inside, after string) {
	before, rest, ok := strings.Cut(text, "<think>")
	if !ok {
		return text, "", ""
	}
	inside, after, _ = strings.Cut(rest, "</think>")
	return strings.TrimSpace(before), inside, after
}

func stringIn(fields map[string]respjson.Field, name string) string {
	var s string
	if f, ok := fields[name]; ok {
		_ = json.Unmarshal([]byte(f.Raw()), &s) // what is not a string is not for us
	}
	return s
}
