package controlplane

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
)

// Options say how a cluster is to be.
type Options struct {
	Binaries Binaries
	// NodeMonitorGracePeriod is how long a node may be silent before it is not
	// Ready; zero for Kubernetes' default of 50 s.
	NodeMonitorGracePeriod time.Duration
	// NodeMonitorPeriod is how often that is looked at; zero for the default of 5 s.
	NodeMonitorPeriod time.Duration
}

// Cluster is a running control plane.
type Cluster struct {
	// Dir holds everything that the cluster writes.
	Dir   string
	Admin kubernetes.Interface

	options    Options
	config     *rest.Config
	kubeconfig string
	token      string
	etcdPort   int
	peerPort   int
	apiPort    int

	mu        sync.Mutex
	processes []*Process
	apiServer *Process
	nodes     map[string]*NodeAgent
	stopped   bool
}

// Start brings a cluster up, or leaves nothing behind.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	// Short, because unix sockets lie below it and their paths are limited.
	dir, err := os.MkdirTemp("", "nf-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{Dir: dir, options: o, nodes: map[string]*NodeAgent{}}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	for _, step := range []func(context.Context) error{c.prepare, c.startEtcd, c.StartAPIServer, c.startControllers, c.startStorage} {
		if err := step(ctx); err != nil {
			c.Stop()
			return nil, err
		}
	}
	return c, nil
}

func (c *Cluster) prepare(context.Context) error {
	secret := make([]byte, 16)
	if _, err := rand.Read(secret); err != nil {
		return err
	}
	c.token = hex.EncodeToString(secret)
	ports, err := freePorts(3)
	if err != nil {
		return err
	}
	c.etcdPort, c.peerPort, c.apiPort = ports[0], ports[1], ports[2]
	c.config = &rest.Config{
		Host: fmt.Sprintf("https://127.0.0.1:%d", c.apiPort), BearerToken: c.token,
		TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(c.Dir, "pki", "apiserver.crt")}, QPS: 200, Burst: 400,
	}
	if err := writeKey(filepath.Join(c.Dir, "sa.key")); err != nil {
		return err
	}
	tokens := c.token + ",admin,admin,system:masters\n"
	if err := os.WriteFile(filepath.Join(c.Dir, "tokens.csv"), []byte(tokens), 0o600); err != nil {
		return err
	}
	c.kubeconfig = filepath.Join(c.Dir, "admin.kubeconfig")
	return WriteKubeconfig(c.config, c.kubeconfig)
}

func (c *Cluster) start(name, path string, args ...string) (*Process, error) {
	p, err := StartProcess(c.Dir, name, []string{"TMPDIR=" + c.Dir}, path, args...)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.processes = append(c.processes, p)
	c.mu.Unlock()
	return p, nil
}

func (c *Cluster) startEtcd(ctx context.Context) error {
	client, peer := fmt.Sprintf("http://127.0.0.1:%d", c.etcdPort), fmt.Sprintf("http://127.0.0.1:%d", c.peerPort)
	p, err := c.start("etcd", c.options.Binaries.Etcd, "--data-dir", filepath.Join(c.Dir, "etcd"), "--unsafe-no-fsync", "--log-level", "warn",
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer)
	if err != nil {
		return err
	}
	return p.waitHTTP(ctx, client+"/health")
}

// StartAPIServer starts the API server, or starts it again after StopAPIServer.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	key := filepath.Join(c.Dir, "sa.key")
	p, err := c.start("kube-apiserver", c.options.Binaries.APIServer,
		"--etcd-servers", fmt.Sprintf("http://127.0.0.1:%d", c.etcdPort), "--secure-port", fmt.Sprint(c.apiPort),
		"--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1", "--cert-dir", filepath.Join(c.Dir, "pki"),
		"--service-account-key-file", key, "--service-account-signing-key-file", key, "--service-account-issuer", "https://kubernetes.default.svc",
		"--token-auth-file", filepath.Join(c.Dir, "tokens.csv"), "--authorization-mode", "RBAC",
		"--service-cluster-ip-range", "10.0.0.0/24", "--endpoint-reconciler-type", "none")
	if err != nil {
		return err
	}
	c.apiServer = p
	if c.Admin == nil {
		if err := p.waitFile(ctx, filepath.Join(c.Dir, "pki", "apiserver.crt")); err != nil {
			return err
		}
		if c.Admin, err = kubernetes.NewForConfig(c.config); err != nil {
			return err
		}
	}
	return p.waitFor(ctx, func(ctx context.Context) error {
		_, err := c.Admin.CoreV1().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err
	})
}

// StopAPIServer takes the API server away, as an outage does.
func (c *Cluster) StopAPIServer() { c.apiServer.Stop(10 * time.Second) }

func (c *Cluster) startControllers(ctx context.Context) error {
	manager := []string{"--kubeconfig", c.kubeconfig, "--leader-elect=false", "--bind-address", "127.0.0.1", "--secure-port", "0",
		"--use-service-account-credentials=false", "--service-account-private-key-file", filepath.Join(c.Dir, "sa.key"), "--cert-dir", filepath.Join(c.Dir, "pki-kcm")}
	if d := c.options.NodeMonitorGracePeriod; d > 0 {
		manager = append(manager, "--node-monitor-grace-period", d.String())
	}
	if d := c.options.NodeMonitorPeriod; d > 0 {
		manager = append(manager, "--node-monitor-period", d.String())
	}
	if _, err := c.start("kube-controller-manager", c.options.Binaries.ControllerManager, manager...); err != nil {
		return err
	}
	if _, err := c.start("kube-scheduler", c.options.Binaries.Scheduler, "--kubeconfig", c.kubeconfig, "--leader-elect=false",
		"--bind-address", "127.0.0.1", "--secure-port", "0", "--cert-dir", filepath.Join(c.Dir, "pki-sched")); err != nil {
		return err
	}
	return poll(ctx, "the default service account", func(ctx context.Context) error {
		_, err := c.Admin.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// startStorage starts the lab's CSI driver and the real attacher for it.
func (c *Cluster) startStorage(ctx context.Context) error {
	socket := filepath.Join(c.Dir, "csi.sock")
	p, err := c.start("lab-csi", c.options.Binaries.LabCSI, "--socket", socket, "--ledger", c.ledgerFile())
	if err != nil {
		return err
	}
	if err := p.waitFile(ctx, socket); err != nil {
		return err
	}
	_, err = c.Admin.StorageV1().CSIDrivers().Create(ctx, &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: DiskDriver},
		Spec:       storagev1.CSIDriverSpec{AttachRequired: ptr.To(true), PodInfoOnMount: ptr.To(false)},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create the CSIDriver: %w", err)
	}
	_, err = c.start("csi-attacher", c.options.Binaries.CSIAttacher, "--csi-address", socket, "--kubeconfig", c.kubeconfig,
		"--reconcile-sync", "10s", "--retry-interval-start", "500ms", "--retry-interval-max", "2s")
	return err
}

// RESTConfig is the administrator's.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

// Kubeconfig is the path of the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return c.kubeconfig }

// Binaries are the programs that the cluster runs.
func (c *Cluster) Binaries() Binaries { return c.options.Binaries }

// Stop ends everything and removes the directory. It may be called twice.
func (c *Cluster) Stop() {
	c.mu.Lock()
	if c.stopped {
		c.mu.Unlock()
		return
	}
	c.stopped = true
	processes := c.processes
	c.mu.Unlock()
	for _, n := range c.agents() {
		n.Kill()
	}
	// The other way round than they were started; etcd goes last.
	for i := len(processes) - 1; i >= 0; i-- {
		processes[i].Stop(5 * time.Second)
	}
	_ = os.RemoveAll(c.Dir) // below the temporary directory, and of no use to anybody
}

// Check tells whether a part of the control plane has ended by itself.
func (c *Cluster) Check() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, p := range c.processes {
		if p.Exited() && !c.stopped && !(p.Name == "kube-apiserver") {
			errs = append(errs, p.Failure())
		}
	}
	return errors.Join(errs...)
}

// WriteKubeconfig writes a kubeconfig file for cfg.
func WriteKubeconfig(cfg *rest.Config, path string) error {
	k := clientcmdapi.NewConfig()
	k.Clusters["lab"] = &clientcmdapi.Cluster{Server: cfg.Host, CertificateAuthority: cfg.CAFile}
	k.AuthInfos["user"] = &clientcmdapi.AuthInfo{Token: cfg.BearerToken}
	k.Contexts["lab"] = &clientcmdapi.Context{Cluster: "lab", AuthInfo: "user"}
	k.CurrentContext = "lab"
	return clientcmd.WriteToFile(*k, path)
}
