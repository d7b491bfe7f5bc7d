package provider_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/resilience-toolkit/resilience/provider"
	"github.com/resilience-toolkit/resilience/provider/fake"
)

// What a call costs beside the model's time: the gate, and decoding.
func BenchmarkExtract(b *testing.B) {
	llm := fake.Func(func(string) fake.Answer { return fake.JSON(whole) })
	r := ask("two teas")
	for b.Loop() {
		if _, err := provider.Extract[invoice](b.Context(), llm, r); err != nil {
			b.Fatal(err)
		}
	}
}

// What three policies that do nothing add to a call of the port.
func BenchmarkWith(b *testing.B) {
	pass := policyFunc(func(ctx context.Context, op func(context.Context) error) error { return op(ctx) })
	schema, err := provider.SchemaOf[invoice]()
	require.NoError(b, err)
	llm := provider.With(careless(whole), pass, pass, pass)
	r := provider.Request{Text: "two teas", Schema: schema}
	for b.Loop() {
		if _, err := llm.Complete(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGate(b *testing.B) {
	schema, err := provider.SchemaOf[invoice]()
	require.NoError(b, err)
	for b.Loop() {
		if _, err := provider.Gate(said(whole), schema); err != nil {
			b.Fatal(err)
		}
	}
}
