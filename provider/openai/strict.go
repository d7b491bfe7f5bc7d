package openai

import (
	"encoding/json"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/resilience-toolkit/resilience/provider"
)

// wireSchema returns the schema as it is sent, and whether the host can be held to it.
//
// The vendor's strict form wants every property of every object required and nothing
// else allowed. A property that may be left out must then be one that may be null, as
// those of [provider.SchemaOf] are. A schema that says something else, or more than
// the strict form knows, is sent as it is: the model sees it, and the gate holds it to
// it.
func wireSchema(s *provider.Schema) (schema json.RawMessage, strict bool, err error) {
	own := s.JSONSchema()
	if !tighten(own) {
		return s.JSON(), false, nil
	}
	schema, err = json.Marshal(own)
	return schema, true, err
}

// tighten puts s into the strict form and reports whether it could.
func tighten(s *jsonschema.Schema) bool {
	if !plain(s) {
		return false
	}
	for _, def := range s.Defs {
		if !tighten(def) {
			return false
		}
	}
	for _, alternative := range s.AnyOf {
		if !tighten(alternative) {
			return false
		}
	}
	if s.Items != nil && !tighten(s.Items) {
		return false
	}
	if s.Type != "object" && !slices.Contains(s.Types, "object") {
		return true
	}
	if !forbids(s.AdditionalProperties) {
		return false
	}
	var optional []string
	for name, p := range s.Properties {
		if !tighten(p) {
			return false
		}
		if slices.Contains(s.Required, name) {
			continue
		}
		if !slices.Contains(p.Types, "null") {
			return false
		}
		optional = append(optional, name)
	}
	slices.Sort(optional)
	s.Required = slices.Concat(s.Required, optional)
	return true
}

// plain reports whether s says what it says in the words of the strict form: a type, a
// reference or alternatives, and the limits that the form knows.
func plain(s *jsonschema.Schema) bool {
	if s.Type == "" && s.Types == nil && s.Ref == "" && s.AnyOf == nil && s.Enum == nil && s.Const == nil {
		return false // anything goes
	}
	return s.AllOf == nil && s.OneOf == nil && s.Not == nil &&
		s.If == nil && s.Then == nil && s.Else == nil &&
		s.DependentSchemas == nil && s.DependentRequired == nil &&
		s.DependencySchemas == nil && s.DependencyStrings == nil &&
		s.PatternProperties == nil && s.PropertyNames == nil &&
		s.MinProperties == nil && s.MaxProperties == nil && s.UnevaluatedProperties == nil &&
		s.PrefixItems == nil && s.ItemsArray == nil && s.AdditionalItems == nil && s.UnevaluatedItems == nil &&
		s.Contains == nil && !s.UniqueItems &&
		s.MinLength == nil && s.MaxLength == nil &&
		s.DynamicRef == "" && s.Definitions == nil && len(s.Extra) == 0
}

// forbids reports whether s is the schema that nothing matches.
func forbids(s *jsonschema.Schema) bool {
	if s == nil {
		return false
	}
	text, err := json.Marshal(s)
	return err == nil && string(text) == "false"
}
