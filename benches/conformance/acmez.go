// Acmez obtains one certificate with github.com/mholt/acmez: acmez DIRECTORY PORT FOLDER NAME...
//
// It answers HTTP-01 on PORT of loopback, and writes chain.pem and key.pem to FOLDER. PROFILE names a profile to order.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"github.com/mholt/acmez/v3"
	"github.com/mholt/acmez/v3/acme"
)

// answers are key authorizations by their paths.
type answers struct{ paths sync.Map }

func (a *answers) Present(_ context.Context, challenge acme.Challenge) error {
	a.paths.Store(challenge.HTTP01ResourcePath(), challenge.KeyAuthorization)
	return nil
}

func (a *answers) CleanUp(_ context.Context, challenge acme.Challenge) error {
	a.paths.Delete(challenge.HTTP01ResourcePath())
	return nil
}

func (a *answers) ServeHTTP(answer http.ResponseWriter, request *http.Request) {
	if text, ok := a.paths.Load(request.URL.Path); ok {
		fmt.Fprint(answer, text)
		return
	}
	http.NotFound(answer, request)
}

func obtain(directory, port, folder string, names []string) error {
	ctx := context.Background()
	solver := &answers{}
	go func() {
		fmt.Fprintln(os.Stderr, http.ListenAndServe("127.0.0.1:"+port, solver))
		os.Exit(1)
	}()
	client := acmez.Client{
		Client:           &acme.Client{Directory: directory},
		ChallengeSolvers: map[string]acmez.Solver{acme.ChallengeTypeHTTP01: solver},
	}
	accountKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	account, err := client.NewAccount(ctx, acme.Account{TermsOfServiceAgreed: true, PrivateKey: accountKey})
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	request, err := acmez.NewCSR(key, names)
	if err != nil {
		return err
	}
	order, err := acmez.OrderParametersFromCSR(account, request)
	if err != nil {
		return err
	}
	order.Profile = os.Getenv("PROFILE")
	chains, err := client.ObtainCertificate(ctx, order)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	block := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	if err := os.WriteFile(filepath.Join(folder, "key.pem"), block, 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "chain.pem"), chains[0].ChainPEM, 0o600)
}

func main() {
	if len(os.Args) < 5 {
		fmt.Fprintln(os.Stderr, "usage: acmez DIRECTORY PORT FOLDER NAME...")
		os.Exit(2)
	}
	if err := obtain(os.Args[1], os.Args[2], os.Args[3], os.Args[4:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
