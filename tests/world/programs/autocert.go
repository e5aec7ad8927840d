// Autocert obtains one certificate as a server does that knows no name beforehand: autocert DIRECTORY ROOT WEBROOT NAME
//
// It answers TLS-ALPN-01 on port 443 of the name's address.
package main

import (
	"context"
	"crypto/tls"
	"log"
	"net"
	"os"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"
)

func main() {
	directory, name := os.Args[1], os.Args[4]
	manager := &autocert.Manager{
		Prompt:     autocert.AcceptTOS,
		HostPolicy: autocert.HostWhitelist(name),
		Client:     &acme.Client{DirectoryURL: directory},
		Cache:      autocert.DirCache("certificates"),
	}
	listener, err := tls.Listen("tcp", net.JoinHostPort(name, "443"), manager.TLSConfig())
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				log.Fatal(err)
			}
			go func() {
				defer connection.Close()
				_ = connection.(*tls.Conn).HandshakeContext(context.Background())
			}()
		}
	}()
	// Any client asks for the name.
	connection, err := tls.Dial("tcp", net.JoinHostPort(name, "443"), &tls.Config{ServerName: name})
	if err != nil {
		log.Fatal(err)
	}
	connection.Close()
}
