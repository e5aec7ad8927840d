// Acmesolver is what cert-manager's solver image runs: its solver, with its flags.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/cert-manager/cert-manager/pkg/issuer/acme/http/solver"
	"github.com/go-logr/logr"
)

func main() {
	var answer solver.HTTP01Solver
	flag.IntVar(&answer.ListenPort, "listen-port", 8089, "port to listen on")
	flag.StringVar(&answer.Domain, "domain", "", "name to answer for")
	flag.StringVar(&answer.Token, "token", "", "last part of the path to answer on")
	flag.StringVar(&answer.Key, "key", "", "the answer")
	flag.Parse()
	fmt.Fprintln(os.Stderr, "acmesolver:", answer.Listen(logr.Discard()))
	os.Exit(1)
}
