package provider

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// A Schema is a JSON Schema (draft 2020-12) with a name, ready to validate answers.
// It is immutable and may be used by any number of goroutines at once.
type Schema struct {
	name     string
	json     json.RawMessage
	schema   *jsonschema.Schema
	resolved *jsonschema.Resolved
}

var schemaName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// NewSchema makes a Schema of s, of which it keeps a copy. Hosts are told the name:
// it has 1 to 64 letters, digits, underscores and hyphens. The root must be an object,
// since that is the only root which every host accepts; wrap a list in one.
func NewSchema(name string, s *jsonschema.Schema) (*Schema, error) {
	switch {
	case !schemaName.MatchString(name):
		return nil, fmt.Errorf("provider: schema name is %q, want 1 to 64 of A-Z, a-z, 0-9, _ and -", name)
	case s == nil:
		return nil, fmt.Errorf("provider: schema %q is nil", name)
	case s.Type != "object":
		return nil, fmt.Errorf("provider: schema %q has the root type %q, want \"object\"", name, s.Type+strings.Join(s.Types, ","))
	}
	own := copyOf(s)
	resolved, err := own.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("provider: schema %q: %w", name, err)
	}
	text, err := json.Marshal(own)
	if err != nil {
		return nil, fmt.Errorf("provider: schema %q: %w", name, err)
	}
	return &Schema{name: name, json: text, schema: own, resolved: resolved}, nil
}

// SchemaOf returns the Schema of a struct, or of a map with string keys; of a pointer,
// what it points to. It is derived once for each type.
//
// The schema says what the type does. Every field is required unless its json tag has
// omitempty or omitzero, and nothing but the fields is allowed. A field that may be
// left out may also be null, and so may a pointer; a slice may be empty but not null.
// A time.Time is a date-time (RFC 3339), a []byte is in base64, a json.Number is a
// number, and a type with an UnmarshalText method is a string. A field's jsonschema tag is its description,
// which the model reads.
//
// A type that has no JSON, refers to itself or has an UnmarshalJSON method is an
// error, as is a field with the json option "string" and one whose JSON name another
// has: what only its code knows, a schema of your own has to say. So does anything
// narrower than a type, such as the values of an enumeration.
func SchemaOf[T any]() (*Schema, error) {
	t := reflect.TypeFor[T]()
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if known, ok := schemas.Load(t); ok {
		d := known.(derived)
		return d.schema, d.err
	}
	s, err := derive(t)
	known, _ := schemas.LoadOrStore(t, derived{s, err})
	d := known.(derived)
	return d.schema, d.err
}

type derived struct {
	schema *Schema
	err    error
}

var schemas sync.Map // of reflect.Type to derived; as many as there are types in the program

func derive(t reflect.Type) (*Schema, error) {
	if t.Kind() != reflect.Struct && t.Kind() != reflect.Map {
		return nil, fmt.Errorf("provider: type %v cannot be extracted, want a struct or a map", t)
	}
	known := map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[time.Time]():   {Type: "string", Format: "date-time"},
		reflect.TypeFor[[]byte]():      {Type: "string", Description: "in base64"},
		reflect.TypeFor[json.Number](): {Type: "number"},
	}
	if err := describe(t, known, map[reflect.Type]bool{}); err != nil {
		return nil, fmt.Errorf("provider: type %v cannot be extracted: %w", t, err)
	}
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: known})
	if err != nil {
		return nil, fmt.Errorf("provider: type %v cannot be extracted: %w", t, err)
	}
	settle(s)
	return NewSchema(nameOf(t), s)
}

// describe finds the types within t whose JSON is not what their kind suggests.
func describe(t reflect.Type, known map[reflect.Type]*jsonschema.Schema, seen map[reflect.Type]bool) error {
	if seen[t] || known[t] != nil {
		return nil
	}
	seen[t] = true
	if t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface {
		p := reflect.PointerTo(t)
		switch {
		case p.Implements(reflect.TypeFor[json.Unmarshaler]()):
			return fmt.Errorf("%v has an UnmarshalJSON method, so its schema must be given", t)
		case p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
			known[t] = &jsonschema.Schema{Type: "string"}
			return nil
		}
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return describe(t.Elem(), known, seen)
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return fmt.Errorf("no JSON can be put into the interface %v", t)
		}
	case reflect.Struct:
		names := map[string]string{} // those in the JSON, to those of the fields
		for f := range t.Fields() {
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case name == "-" && options == "" || !f.IsExported() && !f.Anonymous:
				continue
			case slices.Contains(strings.Split(options, ","), "string"):
				return fmt.Errorf("field %s of %v has the json option \"string\", so its schema must be given", f.Name, t)
			case f.Anonymous && !f.IsExported() && f.Type.Kind() == reflect.Pointer:
				return fmt.Errorf("field %s of %v is a pointer that encoding/json cannot set", f.Name, t)
			}
			if name == "" && !f.Anonymous {
				name = f.Name
			}
			if twin, ok := names[name]; ok && name != "" {
				return fmt.Errorf("fields %s and %s of %v are both %q in JSON, which fills in one at most", twin, f.Name, t, name)
			}
			names[name] = f.Name
			if err := describe(f.Type, known, seen); err != nil {
				return err
			}
		}
	}
	return nil
}

// settle says in the schema what the types mean. The library lets every slice be null,
// which invites a model to answer nothing where nothing was found; and it lets an
// optional field be absent but not null, which are one and the same to a Go value.
func settle(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if slices.Equal(s.Types, []string{"null", "array"}) {
		s.Types, s.Type = nil, "array"
	}
	settle(s.Items)
	settle(s.AdditionalProperties)
	for name, p := range s.Properties {
		settle(p)
		if p.Type != "" && !slices.Contains(s.Required, name) {
			p.Types, p.Type = []string{p.Type, "null"}, ""
		}
	}
}

var notInName = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

func nameOf(t reflect.Type) string {
	name := strings.Trim(notInName.ReplaceAllString(t.Name(), "_"), "_")
	if name == "" {
		return "answer"
	}
	return name[:min(len(name), 64)]
}

// Name returns the schema's name: for one of [SchemaOf], that of the type.
func (s *Schema) Name() string { return s.name }

// JSON returns the schema as JSON, its properties in the order in which they were
// given, that of the fields for one of [SchemaOf]. The result must not be changed.
func (s *Schema) JSON() json.RawMessage { return s.json }

// JSONSchema returns a copy of the schema, which shares nothing with it, for an adapter whose host wants it in
// another form.
func (s *Schema) JSONSchema() *jsonschema.Schema { return copyOf(s.schema) }

// Validate returns an error if raw is not exactly one JSON value that matches the
// schema.
func (s *Schema) Validate(raw json.RawMessage) error {
	v, err := decodeOne(raw)
	if err != nil {
		return err
	}
	return s.resolved.Validate(v)
}
