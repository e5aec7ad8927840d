package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cert-manager/cert-manager/pkg/controller"
	dnsutil "github.com/cert-manager/cert-manager/pkg/issuer/acme/dns/util"
	"github.com/cert-manager/cert-manager/pkg/util"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	_ "github.com/cert-manager/cert-manager/pkg/controller/acmechallenges"
	_ "github.com/cert-manager/cert-manager/pkg/controller/acmeorders"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificate-shim/gateways"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificate-shim/ingresses"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificate-shim/listenerset"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/acme"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/acme"
)

// The scope of this one is the whole cluster: cert-manager leaves it out when it watches one namespace.
const clusterIssuers = "clusterissuers"

// Flags of cert-manager's controller, with its names and defaults. An empty leaderElection runs at once.
type controllerFlags struct {
	controller.ContextOptions
	workers                                   int
	leave                                     string
	leaderElect                               bool
	leaderNamespace, hostName                 string
	leaseDuration, renewDeadline, retryPeriod time.Duration
}

func parseControllerFlags(arguments []string) controllerFlags {
	host, _ := os.Hostname()
	f := controllerFlags{ContextOptions: defaultOptions()}
	flags := flag.NewFlagSet("peer controllers", flag.ExitOnError)
	flags.StringVar(&f.Kubeconfig, "kubeconfig", "", "how to reach the API server")
	flags.StringVar(&f.Namespace, "namespace", "", "watch this namespace only, and no ClusterIssuers")
	flags.StringVar(&f.ClusterResourceNamespace, "cluster-resource-namespace", "kube-system", "where Secrets of ClusterIssuers are")
	flags.Func("kube-api-qps", "requests a second, if the API server has no priority and fairness (20)", func(text string) error {
		_, err := fmt.Sscan(text, &f.KubernetesAPIQPS)
		return err
	})
	flags.IntVar(&f.KubernetesAPIBurst, "kube-api-burst", 50, "requests at once, likewise")
	flags.IntVar(&f.workers, "concurrent-workers", 5, "workers of each controller")
	flags.StringVar(&f.leave, "leave-out", "", "names of controllers that do not run")
	flags.IntVar(&f.MaxConcurrentChallenges, "max-concurrent-challenges", 60, "challenges under way at once")
	flags.BoolVar(&f.leaderElect, "leader-elect", true, "work only while holding the Lease")
	flags.StringVar(&f.leaderNamespace, "leader-election-namespace", "kube-system", "where the Lease is")
	flags.StringVar(&f.hostName, "host-name", host, "first part of the identity in the Lease")
	flags.DurationVar(&f.leaseDuration, "leader-election-lease-duration", 60*time.Second, "others wait this long")
	flags.DurationVar(&f.renewDeadline, "leader-election-renew-deadline", 40*time.Second, "gives up after this long")
	flags.DurationVar(&f.retryPeriod, "leader-election-retry-period", 15*time.Second, "tries and renews this often")
	flags.StringVar(&f.HTTP01SolverImage, "acme-http01-solver-image", f.HTTP01SolverImage, "image of solver Pods")
	list(flags, &f.HTTP01SolverNameservers, "acme-http01-solver-nameservers", "who resolves names for self-checks")
	list(flags, &f.DNS01Nameservers, "dns01-recursive-nameservers", "who resolves names for DNS-01")
	flags.BoolFunc("dns01-recursive-nameservers-only", "ask no authoritative servers", func(string) error {
		f.DNS01CheckAuthoritative = false
		return nil
	})
	flags.DurationVar(&f.DNS01CheckRetryPeriod, "dns01-check-retry-period", 10*time.Second, "pause between self-checks")
	flags.BoolVar(&f.EnableGatewayAPI, "enable-gateway-api", false, "solve by HTTPRoute too")
	_ = flags.Parse(arguments) // ExitOnError: it does not return one
	return f
}

func list(flags *flag.FlagSet, into *[]string, name, usage string) {
	flags.Func(name, usage+", separated by commas", func(text string) error {
		*into = strings.Split(text, ",")
		return nil
	})
}

// What cert-manager's flags default to and no test changes.
func defaultOptions() controller.ContextOptions {
	return controller.ContextOptions{
		KubernetesAPIQPS: 20,
		IssuerOptions:    controller.IssuerOptions{ClusterIssuerAmbientCredentials: true},
		ACMEOptions: controller.ACMEOptions{
			HTTP01SolverImage:                 "quay.io/jetstack/cert-manager-acmesolver:" + util.AppVersion,
			HTTP01SolverResourceRequestCPU:    resource.MustParse("10m"),
			HTTP01SolverResourceRequestMemory: resource.MustParse("64Mi"),
			HTTP01SolverResourceLimitsCPU:     resource.MustParse("100m"),
			HTTP01SolverResourceLimitsMemory:  resource.MustParse("64Mi"),
			ACMEHTTP01SolverRunAsNonRoot:      true,
			DNS01CheckAuthoritative:           true,
			DNS01Nameservers:                  dnsutil.RecursiveNameservers,
		},
		IngressShimOptions: controller.IngressShimOptions{
			DefaultIssuerKind:                 "Issuer",
			DefaultIssuerGroup:                "cert-manager.io",
			DefaultAutoCertificateAnnotations: []string{"kubernetes.io/tls-acme"},
		},
		CertificateOptions: controller.CertificateOptions{
			CopiedAnnotationPrefixes:                 []string{"*", "-kubectl.kubernetes.io/", "-fluxcd.io/", "-argocd.argoproj.io/"},
			CertificateRequestMinimumBackoffDuration: time.Hour,
			CertificateRequestMaximumBackoffDuration: 32 * time.Hour,
		},
	}
}

func runControllers(ctx context.Context, arguments []string) error {
	f := parseControllerFlags(arguments)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	factory, err := controller.NewContextFactory(ctx, f.ContextOptions)
	if err != nil {
		return err
	}
	if !f.leaderElect {
		return f.work(ctx, factory)
	}
	return f.lead(ctx, factory)
}

// Waits for the Lease, works while it holds it, and gives it back at the end.
func (f *controllerFlags) lead(ctx context.Context, factory *controller.ContextFactory) error {
	election, err := factory.Build("leader-election")
	if err != nil {
		return err
	}
	identity := f.hostName + "-external-cert-manager-controller"
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: f.leaderNamespace, Name: "cert-manager-controller"},
		Client:     election.Client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity, EventRecorder: election.Recorder},
		Labels:     map[string]string{"app.kubernetes.io/managed-by": "cert-manager"},
	}
	electing, release := context.WithCancel(context.WithoutCancel(ctx))
	defer release()
	var leads atomic.Bool
	context.AfterFunc(ctx, func() {
		if !leads.Load() {
			release()
		}
	})
	var failure error
	leaderelection.RunOrDie(electing, leaderelection.LeaderElectionConfig{
		Lock:            lock,
		LeaseDuration:   f.leaseDuration,
		RenewDeadline:   f.renewDeadline,
		RetryPeriod:     f.retryPeriod,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				leads.Store(true)
				working, stop := context.WithCancel(leading)
				defer context.AfterFunc(ctx, stop)()
				failure = f.work(working, factory)
				release() // only now: nobody else begins before these controllers have ended
			},
			OnStoppedLeading: func() {},
		},
	})
	if electing.Err() == nil {
		return errors.New("the Lease is lost")
	}
	return failure
}

// Runs every controller until the context ends.
func (f *controllerFlags) work(ctx context.Context, factory *controller.ContextFactory) error {
	shared, err := factory.Build()
	if err != nil {
		return err
	}
	absent := strings.Split(f.leave, ",")
	if f.Namespace != "" {
		absent = append(absent, clusterIssuers)
	}
	var running sync.WaitGroup
	for name, construct := range controller.Known() {
		if slices.Contains(absent, name) {
			continue
		}
		one, err := construct(factory)
		if err != nil {
			return fmt.Errorf("cannot make controller %s: %w", name, err)
		}
		running.Go(func() {
			if err := one.Run(f.workers, ctx); err != nil {
				fmt.Fprintf(os.Stderr, "controller %s: %v\n", name, err)
			}
		})
	}
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	shared.HTTP01ResourceMetadataInformersFactory.Start(ctx.Done())
	if f.EnableGatewayAPI {
		shared.GWShared.Start(ctx.Done())
	}
	fmt.Fprintln(os.Stderr, "peer controllers: at work")
	running.Wait()
	return nil
}
