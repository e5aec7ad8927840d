package main

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	networking "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	networkinglisters "k8s.io/client-go/listers/networking/v1"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
	gatewayinformers "sigs.k8s.io/gateway-api/pkg/client/informers/externalversions"
	gatewaylisters "sigs.k8s.io/gateway-api/pkg/client/listers/apis/v1"
)

// The ingress controller of every class and the Gateway of every Gateway with an HTTP listener, on one port.
//
// A request goes the way it would in a cluster: from a rule to its Service, to a ready endpoint of that, to the Pod.
type router struct {
	ingresses   networkinglisters.IngressLister
	routes      gatewaylisters.HTTPRouteLister
	gateways    gatewaylisters.GatewayLister
	services    corelisters.ServiceLister
	slices      discoverylisters.EndpointSliceLister
	realAddress func(address string) (string, bool)
}

func newRouter(shared informers.SharedInformerFactory, gateways gatewayinformers.SharedInformerFactory, realAddress func(string) (string, bool)) *router {
	return &router{
		ingresses:   shared.Networking().V1().Ingresses().Lister(),
		routes:      gateways.Gateway().V1().HTTPRoutes().Lister(),
		gateways:    gateways.Gateway().V1().Gateways().Lister(),
		services:    shared.Core().V1().Services().Lister(),
		slices:      shared.Discovery().V1().EndpointSlices().Lister(),
		realAddress: realAddress,
	}
}

// One path of an Ingress or HTTPRoute, and the Service behind it.
type rule struct {
	host, path         string
	exact              bool
	namespace, service string
	port               networking.ServiceBackendPort
	created            metav1.Time
}

// ServeHTTP passes a request on. As an HTTP proxy it does the same: a client that is told to use it needs no DNS.
func (r *router) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	host := request.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	target, status, err := r.target(strings.ToLower(host), request.URL.Path)
	if err != nil {
		http.Error(writer, err.Error(), status)
		return
	}
	proxy := httputil.ReverseProxy{Rewrite: func(pass *httputil.ProxyRequest) {
		pass.SetURL(&url.URL{Scheme: "http", Host: target})
		pass.Out.Host = pass.In.Host
		pass.SetXForwarded()
	}}
	proxy.ServeHTTP(writer, request)
}

func (r *router) target(host, path string) (string, int, error) {
	var fitting []rule
	for _, rule := range r.rules() {
		if rule.fits(host, path) {
			fitting = append(fitting, rule)
		}
	}
	if len(fitting) == 0 {
		return "", http.StatusNotFound, fmt.Errorf("no Ingress or HTTPRoute for %s%s", host, path)
	}
	best := slices.MinFunc(fitting, compare)
	address, err := r.endpoint(best)
	return address, http.StatusServiceUnavailable, err
}

func (r rule) fits(host, path string) bool {
	parent, wild := strings.CutPrefix(r.host, "*")
	if r.host != "" && r.host != host && !(wild && strings.HasSuffix(host, parent)) {
		return false
	}
	if r.exact || path == r.path {
		return path == r.path
	}
	return strings.HasPrefix(path, strings.TrimSuffix(r.path, "/")+"/")
}

// The more precise rule comes first, then the older one.
func compare(a, b rule) int {
	precision := func(r rule) int {
		if r.host == "" {
			return 0
		}
		return 2*len(r.host) - strings.Count(r.host, "*")
	}
	return cmp.Or(
		cmp.Compare(precision(b), precision(a)),
		cmp.Compare(len(b.path), len(a.path)),
		a.created.Compare(b.created.Time),
		cmp.Compare(a.service, b.service),
	)
}

func (r *router) rules() []rule {
	var rules []rule
	ingresses, _ := r.ingresses.List(labels.Everything()) // a cache does not fail
	for _, ingress := range ingresses {
		for _, host := range ingress.Spec.Rules {
			if host.HTTP == nil {
				continue
			}
			for _, path := range host.HTTP.Paths {
				if path.Backend.Service == nil {
					continue
				}
				rules = append(rules, rule{
					host: host.Host, path: path.Path, exact: path.PathType != nil && *path.PathType == networking.PathTypeExact,
					namespace: ingress.Namespace, service: path.Backend.Service.Name, port: path.Backend.Service.Port,
					created: ingress.CreationTimestamp,
				})
			}
		}
	}
	routes, _ := r.routes.List(labels.Everything())
	for _, route := range routes {
		if r.attached(route) {
			rules = append(rules, routeRules(route)...)
		}
	}
	return rules
}

// Says whether one of a route's parents is a Gateway with an HTTP listener.
func (r *router) attached(route *gateway.HTTPRoute) bool {
	for _, parent := range route.Spec.ParentRefs {
		namespace := route.Namespace
		if parent.Namespace != nil {
			namespace = string(*parent.Namespace)
		}
		found, err := r.gateways.Gateways(namespace).Get(string(parent.Name))
		if err != nil {
			continue
		}
		isHTTP := func(listener gateway.Listener) bool { return listener.Protocol == gateway.HTTPProtocolType }
		if slices.ContainsFunc(found.Spec.Listeners, isHTTP) {
			return true
		}
	}
	return false
}

func routeRules(route *gateway.HTTPRoute) []rule {
	hosts := route.Spec.Hostnames
	if len(hosts) == 0 {
		hosts = []gateway.Hostname{""}
	}
	var rules []rule
	for _, one := range route.Spec.Rules {
		if len(one.BackendRefs) == 0 || one.BackendRefs[0].Port == nil {
			continue
		}
		backend := one.BackendRefs[0].BackendObjectReference
		namespace := route.Namespace
		if backend.Namespace != nil {
			namespace = string(*backend.Namespace)
		}
		for _, match := range one.Matches {
			for _, host := range hosts {
				rules = append(rules, rule{
					host: string(host), path: *match.Path.Value, exact: *match.Path.Type == gateway.PathMatchExact,
					namespace: namespace, service: string(backend.Name),
					port:    networking.ServiceBackendPort{Number: *backend.Port},
					created: route.CreationTimestamp,
				})
			}
		}
	}
	return rules
}

// Finds where a ready endpoint of a Service listens.
func (r *router) endpoint(to rule) (string, error) {
	service, err := r.services.Services(to.namespace).Get(to.service)
	if err != nil {
		return "", err
	}
	index := slices.IndexFunc(service.Spec.Ports, func(port corev1.ServicePort) bool {
		return port.Port == to.port.Number || to.port.Name != "" && port.Name == to.port.Name
	})
	if index < 0 {
		return "", fmt.Errorf("Service %s/%s has no such port", to.namespace, to.service)
	}
	name := service.Spec.Ports[index].Name
	found, _ := r.slices.EndpointSlices(to.namespace).List(labels.Set{discovery.LabelServiceName: to.service}.AsSelector())
	for _, slice := range found {
		for _, port := range slice.Ports {
			if port.Port == nil || port.Name != nil && *port.Name != name {
				continue
			}
			for _, endpoint := range slice.Endpoints {
				address := fmt.Sprintf("%s:%d", endpoint.Addresses[0], *port.Port)
				if real, running := r.realAddress(address); running && (endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready) {
					return real, nil
				}
			}
		}
	}
	return "", fmt.Errorf("no ready endpoint of Service %s/%s", to.namespace, to.service)
}
