// Peer runs beside kubectl-acme in its tests.
//
//	peer controllers [FLAGS]   cert-manager's own controllers, with cert-manager's flags
//	peer kubelet [FLAGS]       stands in for kubelet, ingress controller and Gateway
//	peer answers [FLAGS]       answers HTTP-01 challenges at once, without any of them
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

var commands = map[string]func(ctx context.Context, arguments []string) error{
	"answers":     runAnswers,
	"controllers": runControllers,
	"kubelet":     runKubelet,
}

func main() {
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: peer controllers|kubelet|answers [FLAGS]")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := commands[os.Args[1]](ctx, os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "peer %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}
