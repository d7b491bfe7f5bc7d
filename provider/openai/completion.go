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
	inside, text := cutThought(text)
	if thought == "" {
		thought = inside
	}
	return provider.Completion{
		Text:      text,
		Reasoning: thought,
		Refusal:   message.Refusal,
		Finish:    finish(choice.FinishReason),
		Model:     answer.Model,
		Usage: provider.Usage{
			Input:     answer.Usage.PromptTokens,
			Output:    answer.Usage.CompletionTokens,
			Reasoning: answer.Usage.CompletionTokensDetails.ReasoningTokens,
		},
	}, nil
}

// finish translates the reasons that have several names among the hosts.
func finish(reason string) provider.Finish {
	switch lower := provider.Finish(strings.ToLower(reason)); lower {
	case "max_tokens", "max_output_tokens", "model_length":
		return provider.FinishLength
	case "content_filtered", "safety", "sensitive":
		return provider.FinishFiltered
	case provider.FinishStop, provider.FinishLength, provider.FinishRefused, provider.FinishFiltered:
		return lower
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
// it does not parse what its model says. It may be left open when the budget is up, and
// lack its beginning if that is the end of the prompt.
func cutThought(text string) (thought, answer string) {
	rest, opened := strings.CutPrefix(strings.TrimSpace(text), "<think>")
	if !opened && strings.HasPrefix(rest, "{") {
		return "", text // the tag is in the answer
	}
	thought, answer, closed := strings.Cut(rest, "</think>")
	if !opened && (!closed || strings.Contains(thought, "<think>")) {
		return "", text
	}
	return thought, answer
}

func stringIn(fields map[string]respjson.Field, name string) string {
	var s string
	if f, ok := fields[name]; ok {
		_ = json.Unmarshal([]byte(f.Raw()), &s) // what is not a string is not for us
	}
	return s
}
