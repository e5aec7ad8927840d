#!/usr/bin/env bash
# kustomize renames an Issuer of cert-manager and leaves the Certificates that name it as they are; the same with generated Secrets.
#
# namePrefix and nameSuffix rename every object, and the references between objects where kustomize knows the fields: those of
# Kubernetes' own kinds. Of cert-manager's it knows none, so spec.issuerRef.name, and the names of Secrets in a solver, keep what they
# said: the build succeeds, and what comes out names an Issuer that is not there. A Pod in the same build has the name of the Secret
# that was generated rewritten. A file of `configurations` with nameReference mends it.
#
# Seen with kustomize 5.8.2: Issuer prod-le, Certificate with issuerRef le, Secret prod-tsig-HASH, solver with tsig; with a
# nameReference for both fields the names agree.
# shellcheck source=findings/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
mkdir build
cd build
# Its module has replacements, which `go install` refuses.
kustomize=sigs.k8s.io/kustomize/kustomize/v5
if ! { go mod init build && go get "$kustomize@v5.8.2" && go build -o ../kustomize "$kustomize"; } >../go.log 2>&1; then
  printf 'cannot be had: kustomize\n' >&2
  exit 2
fi
cd ..

cat >objects.yaml <<'YAML'
apiVersion: cert-manager.io/v1
kind: Issuer
metadata:
  name: le
spec:
  acme:
    server: https://acme.example/directory
    privateKeySecretRef:
      name: le-account
    solvers:
      - dns01:
          rfc2136:
            nameserver: 192.0.2.53
            tsigKeyName: key
            tsigSecretSecretRef:
              name: tsig
              key: secret
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  name: www
spec:
  secretName: www-tls
  dnsNames: [www.example.com]
  issuerRef:
    name: le
---
apiVersion: v1
kind: Pod
metadata:
  name: reader
spec:
  containers:
    - name: reader
      image: reader
      envFrom:
        - secretRef:
            name: tsig
YAML
cat >kustomization.yaml <<'YAML'
resources: [objects.yaml]
namePrefix: prod-
secretGenerator:
  - name: tsig
    literals: [secret=c2VjcmV0]
YAML
cat >references.yaml <<'YAML'
nameReference:
  - kind: Issuer
    group: cert-manager.io
    fieldSpecs:
      - {kind: Certificate, group: cert-manager.io, path: spec/issuerRef/name}
  - kind: Secret
    version: v1
    fieldSpecs:
      - {kind: Issuer, group: cert-manager.io, path: spec/acme/solvers/dns01/rfc2136/tsigSecretSecretRef/name}
YAML

# The names after a field, without what a hash adds.
named() { grep -A 2 "$1:" built | sed -n 's/^ *name: //p' | sed 's/\(tsig\)-[a-z0-9]*$/\1-HASH/' | head -n 1; }

# What a build makes of the three references.
references() {
  ./kustomize build . >built
  printf '%s %s %s' "$(named issuerRef)" "$(named tsigSecretSecretRef)" "$(named secretRef)"
}

expect 'issuerRef, solver and Pod' 'le tsig prod-tsig-HASH' "$(references)"
expect 'the Issuer' '1' "$(grep -c '^  name: prod-le$' built)"
printf 'configurations: [references.yaml]\n' >>kustomization.yaml
expect 'with a nameReference' 'prod-le prod-tsig-HASH prod-tsig-HASH' "$(references)"
finish
