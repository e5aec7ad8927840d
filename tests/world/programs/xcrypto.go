// Xcrypto obtains one certificate with golang.org/x/crypto/acme, step by step: xcrypto DIRECTORY ROOT WEBROOT NAME...
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"golang.org/x/crypto/acme"
)

func newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		log.Fatal(err)
	}
	return key
}

func prove(ctx context.Context, client *acme.Client, folder, address string) error {
	authorization, err := client.GetAuthorization(ctx, address)
	if err != nil || authorization.Status == acme.StatusValid {
		return err
	}
	for _, challenge := range authorization.Challenges {
		if challenge.Type != "http-01" {
			continue
		}
		answer, err := client.HTTP01ChallengeResponse(challenge.Token)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, client.HTTP01ChallengePath(challenge.Token)), []byte(answer), 0o644); err != nil {
			return err
		}
		if _, err := client.Accept(ctx, challenge); err != nil {
			return err
		}
		_, err = client.WaitAuthorization(ctx, address)
		return err
	}
	return fmt.Errorf("%s offers no http-01", address)
}

func obtain(directory, folder string, names []string) error {
	ctx := context.Background()
	client := &acme.Client{Key: newKey(), DirectoryURL: directory}
	if _, err := client.Register(ctx, &acme.Account{}, acme.AcceptTOS); err != nil {
		return err
	}
	order, err := client.AuthorizeOrder(ctx, acme.DomainIDs(names...))
	if err != nil {
		return err
	}
	for _, address := range order.AuthzURLs {
		if err := prove(ctx, client, folder, address); err != nil {
			return err
		}
	}
	// The URL of what newOrder answers: an order that is read has none.
	where := order.URI
	if order, err = client.WaitOrder(ctx, where); err != nil {
		return err
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: names}, newKey())
	if err != nil {
		return err
	}
	chain, _, err := client.CreateOrderCert(ctx, order.FinalizeURL, request, true)
	if err != nil {
		return err
	}
	text := []byte{}
	for _, der := range chain {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	return os.WriteFile("certificate.pem", text, 0o600)
}

func main() {
	if err := obtain(os.Args[1], os.Args[3], os.Args[4:]); err != nil {
		log.Fatal(err)
	}
}
