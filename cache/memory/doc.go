// Package memory is the default [cache.Cache]: in process, with nothing to run.
package memory
