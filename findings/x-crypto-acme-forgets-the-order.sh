#!/usr/bin/env bash
# golang.org/x/crypto/acme cannot wait for a certificate when the answer to finalize has no Location.
#
# RFC 8555 §7.4 shows a Location in that answer and asks for none; the client has the order's URL since newOrder. CreateOrderCert takes
# the finalize URL alone: where the order is still processing, as it is at Pebble and at Let's Encrypt, it polls what the Location of
# that answer says, and without one POSTs to an empty URL. The certificate is made, and a program that still has what newOrder answered
# gets it by WaitOrder and FetchCert. A server that makes certificates within finalize, or repeats the Location, hides it.
#
# Seen with golang.org/x/crypto 0.59.0: `Post "": unsupported protocol scheme ""`, and the order is valid when it is read by its URL.
# shellcheck source=findings/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
mkdir order
cat >order/main.go <<'GO'
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"os"

	"golang.org/x/crypto/acme"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	ctx := context.Background()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	client := &acme.Client{Key: key, DirectoryURL: os.Args[1] + "/directory"}
	_, err = client.Register(ctx, &acme.Account{}, acme.AcceptTOS)
	check(err)
	order, err := client.AuthorizeOrder(ctx, acme.DomainIDs("www.example.com"))
	check(err)
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: []string{"www.example.com"}}, key)
	check(err)
	_, _, err = client.CreateOrderCert(ctx, order.FinalizeURL, request, true)
	fmt.Println(err)
	read, err := client.WaitOrder(ctx, order.URI)
	check(err)
	fmt.Println(read.Status)
}
GO
cd order
if ! { go mod init order && go get golang.org/x/crypto@v0.59.0 && go build -o ../order.bin .; } >../go.log 2>&1; then
  printf 'cannot be had: golang.org/x/crypto\n' >&2
  exit 2
fi
cd ..
acme_stub ready
timeout 60 ./order.bin "$server" >said 2>&1 || true

expect 'what CreateOrderCert says' 'Post "": unsupported protocol scheme ""' "$(sed -n 1p said)"
expect 'the order, read by its URL' 'valid' "$(sed -n 2p said)"
finish
