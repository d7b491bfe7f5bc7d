// Package compliancetest holds the rules that an implementation of one of the
// toolkit's ports must keep, as tests that its author runs.
package compliancetest
