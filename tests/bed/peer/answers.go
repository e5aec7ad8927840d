package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"

	acme "github.com/cert-manager/cert-manager/pkg/apis/acme/v1"
	cmclient "github.com/cert-manager/cert-manager/pkg/client/clientset/versioned"
	cminformers "github.com/cert-manager/cert-manager/pkg/client/informers/externalversions"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const challengePath = "/.well-known/acme-challenge/"

// Answers each HTTP-01 challenge (RFC 8555 section 8.3) as soon as its Challenge is there; no Pod has to run for it.
func runAnswers(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("peer answers", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "how to reach the API server")
	listen := flags.String("listen", "127.0.0.1:0", "where requests are taken")
	_ = flags.Parse(arguments) // ExitOnError: it does not return one

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	client, err := cmclient.NewForConfig(config)
	if err != nil {
		return err
	}
	var keys sync.Map // key authorizations by token
	see := func(object any) {
		challenge := object.(*acme.Challenge)
		keys.Store(challenge.Spec.Token, challenge.Spec.Key)
	}
	shared := cminformers.NewSharedInformerFactory(client, 0)
	_, err = shared.Acme().V1().Challenges().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    see,
		UpdateFunc: func(_, object any) { see(object) },
	})
	if err != nil {
		return err
	}
	shared.Start(ctx.Done())
	shared.WaitForCacheSync(ctx.Done())

	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "peer answers: at work on", listener.Addr())
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	answer := func(w http.ResponseWriter, r *http.Request) {
		token, isChallenge := strings.CutPrefix(r.URL.Path, challengePath)
		key, isKnown := keys.Load(token)
		if !isChallenge || !isKnown {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, key.(string))
	}
	if err := http.Serve(listener, http.HandlerFunc(answer)); ctx.Err() == nil {
		return err
	}
	return nil
}
