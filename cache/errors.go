package cache

import (
	"errors"
	"fmt"
)

// ErrClosed is returned by every method of a cache that was closed by its owner.
var ErrClosed = errors.New("cache: used after it was closed")

// ErrNotInteger is matched by the error of Increment on a value that is not a
// decimal integer of 64 bits.
var ErrNotInteger = errors.New("cache: value is not an integer")

// ErrOverflow is matched by the error of Increment on the largest integer.
var ErrOverflow = errors.New("cache: counter would overflow")

// An UnavailableError says that the store could not be asked, or did not answer:
// a network failure, an exhausted pool, a server that is loading, read only or
// gone, a time limit that ran out. Whether the operation took effect is not known.
// It never stands for an answer, so it is never mistaken for "limited", "open" or
// "absent".
type UnavailableError struct {
	Op  string // the operation, such as "get" or "acquire"
	Err error  // what went wrong, in the words of the store's client; never nil
}

// Error implements error.
func (e *UnavailableError) Error() string {
	return fmt.Sprintf("cache: %s: store unavailable: %v", e.Op, e.Err)
}

// Unwrap returns Err.
func (e *UnavailableError) Unwrap() error { return e.Err }

// A CorruptError says that what is stored under a key is not what this operation
// can use: of another kind, garbage, or written by a version that is not known
// here. The store itself is well.
type CorruptError struct {
	Op  string // the operation, such as "get" or "acquire"
	Key string // the key, as the caller gave it
	Err error  // what is wrong with it; never nil
}

// Error implements error.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("cache: %s %q: stored state cannot be used: %v", e.Op, e.Key, e.Err)
}

// Unwrap returns Err.
func (e *CorruptError) Unwrap() error { return e.Err }

// An ArgumentError says which argument of a call was wrong, and what it was.
type ArgumentError struct {
	Op    string // the operation, such as "set" or "record hit"
	Field string // the argument, such as "ttl"
	Value any    // what was given
	Want  string // what is wanted, such as "zero or more"
}

// Error implements error.
func (e *ArgumentError) Error() string {
	return fmt.Sprintf("cache: %s: %s is %v, want %s", e.Op, e.Field, e.Value, e.Want)
}
