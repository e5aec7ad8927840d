// Vault runs Vault's core with its secrets engine pki alone: vault ADDRESS URL CERTIFICATE KEY BUNDLE NAME...
//
// It listens at the address as the URL says, with that certificate and key, keeps all in memory, and issues by the CA of the bundle
// (its key and certificate, and its issuer's) for these names, what is below them, and addresses. The program that Vault publishes
// has a database driver and a login of every cloud in it, and does not build from modules.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/vault/builtin/logical/pki"
	"github.com/hashicorp/vault/helper/namespace"
	vaulthttp "github.com/hashicorp/vault/http"
	"github.com/hashicorp/vault/internalshared/configutil"
	"github.com/hashicorp/vault/sdk/helper/consts"
	"github.com/hashicorp/vault/sdk/logical"
	"github.com/hashicorp/vault/sdk/physical/inmem"
	"github.com/hashicorp/vault/vault"
)

type values = map[string]any

// registry knows the plugin pki.
type registry struct{}

func (registry) Contains(name string, kind consts.PluginType) bool {
	return name == "pki" && kind == consts.PluginTypeSecrets
}

func (r registry) Get(name string, kind consts.PluginType) (func() (any, error), bool) {
	return func() (any, error) { return logical.Factory(pki.Factory), nil }, r.Contains(name, kind)
}

func (registry) Keys(kind consts.PluginType) []string {
	if kind == consts.PluginTypeSecrets {
		return []string{"pki"}
	}
	return nil
}

func (r registry) DeprecationStatus(name string, kind consts.PluginType) (consts.DeprecationStatus, bool) {
	return consts.Supported, r.Contains(name, kind)
}

func (registry) IsBuiltinEntPlugin(string, consts.PluginType) bool { return false }

// opened returns a core that is unsealed, and its root token.
func opened(ctx context.Context, url string) (*vault.Core, string, error) {
	logger := hclog.New(&hclog.LoggerOptions{Level: hclog.Info})
	store, err := inmem.NewInmem(nil, logger)
	if err != nil {
		return nil, "", err
	}
	core, err := vault.NewCore(&vault.CoreConfig{
		Physical: store, Logger: logger, DisableMlock: true, RedirectAddr: url, BuiltinRegistry: registry{},
		LogicalBackends: map[string]logical.Factory{"pki": pki.Factory},
	})
	if err != nil {
		return nil, "", err
	}
	made, err := core.Initialize(ctx, &vault.InitParams{BarrierConfig: &vault.SealConfig{SecretShares: 1, SecretThreshold: 1}, RecoveryConfig: &vault.SealConfig{}})
	if err != nil {
		return nil, "", err
	}
	if open, err := core.Unseal(made.SecretShares[0]); err != nil || !open {
		return nil, "", fmt.Errorf("it stays sealed: %w", err)
	}
	return core, made.RootToken, nil
}

func serve(address, url, certificate, key, bundle string, names []string) error {
	text, err := os.ReadFile(bundle)
	if err != nil {
		return err
	}
	ctx := namespace.RootContext(context.Background())
	core, token, err := opened(ctx, url)
	if err != nil {
		return err
	}
	headers := []string{"Last-Modified", "Location", "Replay-Nonce", "Link", "Retry-After"}
	steps := []struct {
		path string
		data values
	}{
		{"sys/mounts/pki", values{"type": "pki", "config": values{"max_lease_ttl": "9000h"}}},
		{"sys/mounts/pki/tune", values{"passthrough_request_headers": []string{"If-Modified-Since"}, "allowed_response_headers": headers}},
		{"pki/config/cluster", values{"path": url + "/v1/pki"}},
		{"pki/config/ca", values{"pem_bundle": string(text)}},
		{"pki/roles/world", values{
			"allowed_domains": strings.Join(names, ","), "allow_subdomains": true, "allow_bare_domains": true,
			"allow_wildcard_certificates": true, "allow_ip_sans": true, "key_type": "any", "max_ttl": "720h", "require_cn": false,
			// The CA's own certificate is a second old.
			"not_before_duration": "1s",
		}},
		{"pki/config/acme", values{"enabled": true, "default_directory_policy": "role:world", "allowed_roles": "world", "eab_policy": "not-required"}},
	}
	for _, step := range steps {
		asked := &logical.Request{Operation: logical.UpdateOperation, Path: step.path, Data: step.data, ClientToken: token}
		answer, err := core.HandleRequest(ctx, asked)
		if err == nil && answer != nil {
			err = answer.Error()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", step.path, err)
		}
	}
	handler := vaulthttp.Handler.Handler(&vault.HandlerProperties{Core: core, ListenerConfig: &configutil.Listener{}})
	return http.ListenAndServeTLS(address, certificate, key, handler)
}

func main() {
	if err := serve(os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5], os.Args[6:]); err != nil {
		log.Fatal(err)
	}
}
