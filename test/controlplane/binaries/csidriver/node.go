// Package csidriver is the lab's CSI driver: disks that one machine at a time may
// have. Its controller keeps a ledger, which is the ground truth of who could
// write when; its node plugin mounts nothing.
package csidriver

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// Name is the driver's name in StorageClasses, PersistentVolumes and CSINodes.
const Name = "disk.lab.nodefence.io"

// ServeNode serves the node plugin below the kubelet's root directory, and
// registers it with the kubelet.
func ServeNode(node, kubeletRoot string) error {
	plugin := filepath.Join(kubeletRoot, "plugins", "d.sock")
	if err := serve(plugin, func(s *grpc.Server) {
		csi.RegisterIdentityServer(s, identity{})
		csi.RegisterNodeServer(s, nodeServer{node: node})
	}); err != nil {
		return err
	}
	return serve(filepath.Join(kubeletRoot, "plugins_registry", "d-reg.sock"), func(s *grpc.Server) {
		registration.RegisterRegistrationServer(s, registrar{endpoint: plugin})
	})
}

func serve(socket string, register func(*grpc.Server)) error {
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		return err
	}
	if err := os.Remove(socket); err != nil && !os.IsNotExist(err) {
		return err
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	s := grpc.NewServer()
	register(s)
	go func() {
		if err := s.Serve(l); err != nil {
			fmt.Fprintln(os.Stderr, "csi:", err)
			os.Exit(1)
		}
	}()
	return nil
}

type registrar struct {
	registration.UnsafeRegistrationServer
	endpoint string
}

func (r registrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: "CSIPlugin", Name: Name, Endpoint: r.endpoint, SupportedVersions: []string{"1.0.0"}}, nil
}

func (r registrar) NotifyRegistrationStatus(_ context.Context, s *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	if !s.PluginRegistered {
		fmt.Fprintln(os.Stderr, "csi: not registered:", s.Error)
	}
	return &registration.RegistrationStatusResponse{}, nil
}

type identity struct {
	csi.UnimplementedIdentityServer
}

func (identity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: Name, VendorVersion: "1"}, nil
}

func (identity) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{{
		Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_CONTROLLER_SERVICE}},
	}}}, nil
}

func (identity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

// nodeServer makes the directories that the kubelet expects and mounts nothing:
// the kubelet's own mounter is a fake.
type nodeServer struct {
	csi.UnimplementedNodeServer
	node string
}

func (s nodeServer) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: s.node}, nil
}

func (nodeServer) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

func (nodeServer) NodePublishVolume(_ context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	if err := os.MkdirAll(r.TargetPath, 0o755); err != nil {
		return nil, err
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

func (nodeServer) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if err := os.RemoveAll(r.TargetPath); err != nil {
		return nil, err
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}
