// Package gatewaytest has what tests of models need: a provider that speaks every protocol from a script, and what each store of the
// gateway must do.
//
// It is for tests only.
//
// Invariant: a scripted provider plays each script once, in order, and says "ok" when it has none.
package gatewaytest
