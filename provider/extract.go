package provider

import (
	"context"
	"encoding/json"
)

// Extract asks the model for a T out of the request's text. T is a struct, a map with
// string keys, or a pointer to one, and its schema is that of [SchemaOf] unless the
// request brings one, which then must describe JSON that a T can hold. It had better
// allow no properties beside its own: encoding/json takes "NAME" for "name", and the
// schema has not looked at it.
//
// It returns a T that the model has filled in completely, or the zero T and an error:
// the answer is validated here too, so that this is true of every [LLM]. An answer
// that matches the schema and yet does not fit a T, a number too large for its field
// or a time that is none, is a [*MalformedCompletionError].
func Extract[T any](ctx context.Context, llm LLM, r Request) (T, error) {
	var zero, value T
	if r.Schema == nil {
		s, err := SchemaOf[T]()
		if err != nil {
			return zero, err
		}
		r.Schema = s
	}
	if err := r.Validate(); err != nil {
		return zero, err
	}
	raw, err := llm.Complete(ctx, r)
	if err != nil {
		return zero, err
	}
	c := Completion{Text: string(raw), Model: llm.Model()}
	raw, err = Gate(c, r.Schema)
	if err != nil {
		return zero, err
	}
	if err := json.Unmarshal(raw, &value); err != nil {
		return zero, malformed(c, r.Schema, err)
	}
	return value, nil
}
