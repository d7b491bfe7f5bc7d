package provider

import (
	"fmt"
	"strings"
	"unicode"
)

// CheckModel returns an error if name cannot serve as the provenance of a record
// that is kept: it must be provider-qualified and versioned, like
// "anthropic/claude-opus-4-20250514" or "ollama/qwen3.6-27b-mtp". "gpt-4.1" does not
// say who served it; "anthropic/claude" names a family and "openai/gpt-latest"
// whatever is newest today, so that "extract again what the old model read" could
// never be answered. What shows a version is a digit in the model's half; that it is
// the right one, nobody can check here. Every adapter's constructor refuses a name
// that CheckModel does.
func CheckModel(name string) error {
	host, model, qualified := strings.Cut(name, "/")
	var want string
	switch {
	case strings.ContainsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }):
		want = "one without spaces"
	case !qualified || host == "":
		want = `one with its provider, as in "openai/gpt-4.1-2025-04-14"`
	case strings.HasSuffix(strings.ToLower(model), "latest"):
		want = "a version that stays the same"
	case !strings.ContainsFunc(model, unicode.IsDigit):
		want = `one with its version, as in "openai/gpt-4.1-2025-04-14"`
	default:
		return nil
	}
	return fmt.Errorf("provider: model name is %q, want %s", name, want)
}
