package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	gatewayclient "sigs.k8s.io/gateway-api/pkg/client/clientset/versioned"
	gatewayinformers "sigs.k8s.io/gateway-api/pkg/client/informers/externalversions"
)

const solverImage = "quay.io/jetstack/cert-manager-acmesolver"

// The only node: every Pod is bound to it, because EndpointSlices have room only for Pods with a node.
const nodeName = "bed"

// Scheduler and kubelet of that node: runs the first container of every Pod as a local process.
type kubelet struct {
	ctx    context.Context
	client kubernetes.Interface
	images map[string]string // programs by name of image, without tag
	logs   string            // folder, one file per Pod

	mutex     sync.Mutex
	pods      map[types.UID]*process
	addresses map[string]string // where "podIP:port" really listens
	made      int               // Pod addresses given out
}

// What runs for one Pod; it has ended when the channel is closed.
type process struct {
	stop    context.CancelFunc
	ended   chan struct{}
	removal sync.Once
}

func runKubelet(ctx context.Context, arguments []string) error {
	k := &kubelet{
		ctx:       ctx,
		images:    map[string]string{},
		pods:      map[types.UID]*process{},
		addresses: map[string]string{},
	}
	if self, err := os.Executable(); err == nil {
		k.images[solverImage] = filepath.Join(filepath.Dir(self), "acmesolver")
	}
	flags := flag.NewFlagSet("peer kubelet", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "how to reach the API server")
	listen := flags.String("listen", "127.0.0.1:0", "where Ingresses and Gateways take requests")
	flags.StringVar(&k.logs, "logs", os.TempDir(), "folder for what the containers write")
	flags.Func("image", "IMAGE=PROGRAM: what containers of an image run, whatever its tag", func(text string) error {
		image, program, found := strings.Cut(text, "=")
		if !found {
			return errors.New("needs IMAGE=PROGRAM")
		}
		k.images[image] = program
		return nil
	})
	_ = flags.Parse(arguments) // ExitOnError: it does not return one

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1 // the API server's own limits are enough
	if k.client, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	gateways, err := gatewayclient.NewForConfig(config)
	if err != nil {
		return err
	}
	shared := informers.NewSharedInformerFactory(k.client, 0)
	sharedGateways := gatewayinformers.NewSharedInformerFactory(gateways, 0)
	router := newRouter(shared, sharedGateways, k.realAddress)
	_, err = shared.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { k.see(object.(*corev1.Pod)) },
		UpdateFunc: func(_, object any) { k.see(object.(*corev1.Pod)) },
		DeleteFunc: func(object any) {
			if last, unknown := object.(cache.DeletedFinalStateUnknown); unknown {
				object = last.Obj
			}
			k.forget(object.(*corev1.Pod).UID)
		},
	})
	if err != nil {
		return err
	}
	k.register()
	shared.Start(ctx.Done())
	sharedGateways.Start(ctx.Done())
	shared.WaitForCacheSync(ctx.Done())
	sharedGateways.WaitForCacheSync(ctx.Done())

	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "peer kubelet: at work on", listener.Addr())
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	if err := http.Serve(listener, router); ctx.Err() == nil {
		return err
	}
	k.waitForAll()
	return nil
}

// Adds the node.
func (k *kubelet) register() {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName, Labels: map[string]string{"kubernetes.io/os": "linux"}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "StandIn", LastTransitionTime: metav1.Now(),
		}}},
	}
	k.insist(k.ctx, "add the node", func() error {
		_, err := k.client.CoreV1().Nodes().Create(k.ctx, node, metav1.CreateOptions{})
		return err
	})
}

// Starts a Pod that is new and has not ended; stops one that is being deleted, and then lets it go.
func (k *kubelet) see(pod *corev1.Pod) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	known := k.pods[pod.UID]
	if known == nil {
		ctx, stop := context.WithCancel(k.ctx)
		known = &process{stop: stop, ended: make(chan struct{})}
		k.pods[pod.UID] = known
		if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			close(known.ended)
		} else {
			k.made++
			ip := fmt.Sprintf("10.244.%d.%d", k.made/250, k.made%250+1)
			go func() {
				defer close(known.ended)
				k.bind(ctx, pod)
				k.run(ctx, pod, ip)
			}()
		}
	}
	if pod.DeletionTimestamp != nil {
		known.removal.Do(func() { go k.remove(pod, known) })
	}
}

func (k *kubelet) bind(ctx context.Context, pod *corev1.Pod) {
	if pod.Spec.NodeName != "" {
		return
	}
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: nodeName},
	}
	k.insist(ctx, "bind Pod "+pod.Namespace+"/"+pod.Name, func() error {
		return k.client.CoreV1().Pods(pod.Namespace).Bind(ctx, binding, metav1.CreateOptions{})
	})
}

// Ends a Pod's process; then the Pod may go.
func (k *kubelet) remove(pod *corev1.Pod, running *process) {
	running.stop()
	<-running.ended
	k.insist(k.ctx, "let go of Pod "+pod.Namespace+"/"+pod.Name, func() error {
		now := metav1.DeleteOptions{GracePeriodSeconds: new(int64), Preconditions: &metav1.Preconditions{UID: &pod.UID}}
		return k.client.CoreV1().Pods(pod.Namespace).Delete(k.ctx, pod.Name, now)
	})
}

func (k *kubelet) forget(uid types.UID) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if known := k.pods[uid]; known != nil {
		known.stop()
		delete(k.pods, uid)
	}
}

// Waits for every process; the context has ended them.
func (k *kubelet) waitForAll() {
	k.mutex.Lock()
	all := slices.Collect(maps.Values(k.pods))
	k.mutex.Unlock()
	for _, one := range all {
		<-one.ended
	}
}

// Writes to the API server until it takes or refuses it, and says what it said.
func (k *kubelet) insist(ctx context.Context, deed string, write func() error) {
	for ctx.Err() == nil {
		err := write()
		switch {
		case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err), apierrors.IsInvalid(err), apierrors.IsAlreadyExists(err):
			return
		}
		fmt.Fprintf(os.Stderr, "peer kubelet: cannot %s: %v\n", deed, err)
		time.Sleep(500 * time.Millisecond)
	}
}

// Says where a Pod's address and port really are.
func (k *kubelet) realAddress(address string) (string, bool) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	found, known := k.addresses[address]
	return found, known
}
