// Lego obtains one certificate with the library of lego 5: lego DIRECTORY ROOT WEBROOT NAME...
package main

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"log"
	"os"

	"github.com/go-acme/lego/v5/acme"
	"github.com/go-acme/lego/v5/certcrypto"
	"github.com/go-acme/lego/v5/certificate"
	"github.com/go-acme/lego/v5/lego"
	"github.com/go-acme/lego/v5/providers/http/webroot"
	"github.com/go-acme/lego/v5/registration"
)

type user struct {
	key     crypto.Signer
	account *acme.ExtendedAccount
}

func (u *user) GetEmail() string                       { return "admin@acme.test" }
func (u *user) GetRegistration() *acme.ExtendedAccount { return u.account }
func (u *user) GetPrivateKey() crypto.Signer           { return u.key }

func obtain(directory, folder string, names []string) error {
	ctx := context.Background()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	owner := &user{key: key}
	config := lego.NewConfig(owner)
	config.CADirURL = directory
	client, err := lego.NewClient(config)
	if err != nil {
		return err
	}
	provider, err := webroot.NewHTTPProvider(folder)
	if err != nil {
		return err
	}
	if err := client.Challenge.SetHTTP01Provider(provider); err != nil {
		return err
	}
	if owner.account, err = client.Registration.Register(ctx, registration.RegisterOptions{TermsOfServiceAgreed: true}); err != nil {
		return err
	}
	made, err := client.Certificate.Obtain(ctx, certificate.ObtainRequest{Domains: names, KeyType: certcrypto.EC256, Bundle: true})
	if err != nil {
		return err
	}
	return os.WriteFile("certificate.pem", made.Certificate, 0o600)
}

func main() {
	if err := obtain(os.Args[1], os.Args[3], os.Args[4:]); err != nil {
		log.Fatal(err)
	}
}
