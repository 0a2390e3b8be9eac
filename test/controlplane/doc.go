// Package controlplane runs the real Kubernetes control plane without
// containers: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, the
// CSI attacher, and real kubelets over a fake runtime. Everything listens on
// loopback, writes below one temporary directory, and ends with Stop or with the
// process that started it.
//
// What lives here: how the binaries are built (once, into a cache outside the
// tree), started and ended. What must not: anything of nodefence itself.
package controlplane
