package provider

import (
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"
)

// copyOf returns a schema that shares nothing with s. The library's own copy shares
// its lists, so that a name deleted from the copy's Required would be gone from that
// of a Schema which others use.
func copyOf(s *jsonschema.Schema) *jsonschema.Schema {
	return deepCopy(reflect.ValueOf(s)).Interface().(*jsonschema.Schema)
}

func deepCopy(v reflect.Value) reflect.Value {
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			c.Set(reflect.New(v.Type().Elem()))
			c.Elem().Set(deepCopy(v.Elem()))
		}
	case reflect.Interface:
		if !v.IsNil() {
			c.Set(deepCopy(v.Elem()))
		}
	case reflect.Slice:
		if !v.IsNil() {
			c.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			for i := range v.Len() {
				c.Index(i).Set(deepCopy(v.Index(i)))
			}
		}
	case reflect.Map:
		if !v.IsNil() {
			c.Set(reflect.MakeMapWithSize(v.Type(), v.Len()))
			for name, value := range v.Seq2() {
				c.SetMapIndex(name, deepCopy(value))
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				c.Field(i).Set(deepCopy(v.Field(i)))
			}
		}
	}
	return c
}
