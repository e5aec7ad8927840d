package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Runs a Pod's container until the Pod is deleted or has ended, as its restart policy says.
func (k *kubelet) run(ctx context.Context, pod *corev1.Pod, ip string) {
	container := pod.Spec.Containers[0]
	image, _, _ := strings.Cut(container.Image, "@")
	if colon := strings.LastIndex(image, ":"); colon > strings.LastIndex(image, "/") {
		image = image[:colon]
	}
	program, known := k.images[image]
	if !known {
		waiting := &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "the bed has no program for " + image}
		k.report(ctx, pod, corev1.PodPending, "", corev1.ContainerState{Waiting: waiting}, 0)
		return
	}
	for restarts := int32(0); ctx.Err() == nil; restarts++ {
		code := k.runOnce(ctx, pod, program, ip, restarts)
		policy := pod.Spec.RestartPolicy
		if policy == corev1.RestartPolicyNever || policy == corev1.RestartPolicyOnFailure && code == 0 {
			phase := corev1.PodSucceeded
			if code != 0 {
				phase = corev1.PodFailed
			}
			lastWords, _ := os.ReadFile(k.lastWords(pod)) // most programs leave none
			ended := &corev1.ContainerStateTerminated{ExitCode: int32(code), Message: string(lastWords), FinishedAt: metav1.Now()}
			k.report(ctx, pod, phase, ip, corev1.ContainerState{Terminated: ended}, restarts)
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second): // a program that cannot start must not take the whole machine
		}
	}
}

// Runs a Pod's container once and returns its exit code.
func (k *kubelet) runOnce(ctx context.Context, pod *corev1.Pod, program, ip string, restarts int32) int {
	port, err := freePort()
	if err != nil {
		return -1
	}
	container := pod.Spec.Containers[0]
	arguments := container.Args
	if len(container.Command) > 1 {
		arguments = append(container.Command[1:len(container.Command):len(container.Command)], arguments...)
	}
	arguments, asked := listenOn(arguments, port)
	for index, argument := range arguments {
		arguments[index] = strings.ReplaceAll(argument, container.TerminationMessagePath, k.lastWords(pod))
	}
	command := exec.CommandContext(ctx, program, arguments...)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = 5 * time.Second // what ignores the signal is killed
	command.Env = os.Environ()
	for _, variable := range container.Env {
		command.Env = append(command.Env, variable.Name+"="+variable.Value)
	}
	log := filepath.Join(k.logs, pod.Namespace+"_"+pod.Name+".log")
	output, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return -1
	}
	defer output.Close()
	command.Stdout, command.Stderr = output, output
	if err := command.Start(); err != nil {
		fmt.Fprintln(output, err)
		return -1
	}
	ended := make(chan int, 1)
	go func() {
		_ = command.Wait() // the exit code says it all
		ended <- command.ProcessState.ExitCode()
	}()
	if asked != 0 {
		address := fmt.Sprintf("%s:%d", ip, asked)
		k.mutex.Lock()
		k.addresses[address] = fmt.Sprintf("127.0.0.1:%d", port)
		k.mutex.Unlock()
		defer func() {
			k.mutex.Lock()
			defer k.mutex.Unlock()
			delete(k.addresses, address)
		}()
		if code, early := waitUntilListening(port, ended); early {
			return code
		}
	}
	running := &corev1.ContainerStateRunning{StartedAt: metav1.Now()}
	k.report(ctx, pod, corev1.PodRunning, ip, corev1.ContainerState{Running: running}, restarts)
	return <-ended
}

// Replaces the port that a solver is told to listen on: all Pods share one machine. Returns the port it was told.
func listenOn(arguments []string, port int) ([]string, int) {
	const flagName = "--listen-port"
	replaced := make([]string, len(arguments))
	copy(replaced, arguments)
	for index, argument := range replaced {
		if value, found := strings.CutPrefix(argument, flagName+"="); found {
			asked, _ := strconv.Atoi(value)
			replaced[index] = fmt.Sprintf("%s=%d", flagName, port)
			return replaced, asked
		}
		if argument == flagName && index+1 < len(replaced) {
			asked, _ := strconv.Atoi(replaced[index+1])
			replaced[index+1] = strconv.Itoa(port)
			return replaced, asked
		}
	}
	return replaced, 0
}

// The file that stands for a Pod's terminationMessagePath in its arguments: all Pods share one machine.
func (k *kubelet) lastWords(pod *corev1.Pod) string {
	return filepath.Join(k.logs, pod.Namespace+"_"+pod.Name+".last-words")
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// Waits until somebody listens, at most ten seconds; returns early with the exit code of a program that ended.
func waitUntilListening(port int, ended chan int) (int, bool) {
	for range 1000 {
		connection, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			_ = connection.Close()
			return 0, false
		}
		select {
		case code := <-ended:
			return code, true
		case <-time.After(10 * time.Millisecond):
		}
	}
	return 0, false
}

// Writes a Pod's status.
func (k *kubelet) report(ctx context.Context, pod *corev1.Pod, phase corev1.PodPhase, ip string, state corev1.ContainerState, restarts int32) {
	ready := corev1.ConditionFalse
	if phase == corev1.PodRunning {
		ready = corev1.ConditionTrue
	}
	now := metav1.Now()
	conditions := []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: now},
		{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: now},
		{Type: corev1.ContainersReady, Status: ready, LastTransitionTime: now},
		{Type: corev1.PodReady, Status: ready, LastTransitionTime: now},
	}
	container := pod.Spec.Containers[0]
	status := corev1.PodStatus{
		Phase:      phase,
		PodIP:      ip,
		Conditions: conditions,
		StartTime:  &now,
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: container.Name, Image: container.Image, State: state, RestartCount: restarts,
			Ready: ready == corev1.ConditionTrue, Started: new(ready == corev1.ConditionTrue),
		}},
	}
	if ip != "" {
		status.PodIPs = []corev1.PodIP{{IP: ip}}
	}
	// The uid: a namesake that took its place has a status of its own.
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		return
	}
	k.insist(ctx, "write the status of Pod "+pod.Namespace+"/"+pod.Name, func() error {
		options := metav1.PatchOptions{FieldManager: "kubelet"}
		_, err := k.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, options, "status")
		return err
	})
}
