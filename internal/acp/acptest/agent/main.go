// Command agent is the scripted agent of package acptest as a program, to be put into a sandbox.
package main

import (
	"fmt"
	"os"

	"sandboxd/internal/acp/acptest"
)

func main() {
	a := acptest.Agent{Loads: os.Getenv("ACPTEST_LOADS") != "", Run: acptest.Shell}
	if err := a.Serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
}
