package csidriver

import (
	"context"
	"encoding/json"
	"os"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Event is one line of the ledger.
type Event struct {
	At     time.Time `json:"at"`
	Op     string    `json:"op"` // publish or unpublish
	Volume string    `json:"volume"`
	Node   string    `json:"node"`
	Error  string    `json:"error,omitempty"`
}

// ServeController serves the controller side on socket and appends to the ledger.
func ServeController(socket, ledger string) error {
	f, err := os.OpenFile(ledger, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return serve(socket, func(s *grpc.Server) {
		csi.RegisterIdentityServer(s, identity{})
		csi.RegisterControllerServer(s, &controllerServer{ledger: json.NewEncoder(f), owner: map[string]string{}})
	})
}

// controllerServer gives each disk to one machine at a time.
type controllerServer struct {
	csi.UnimplementedControllerServer
	mu     sync.Mutex
	ledger *json.Encoder
	owner  map[string]string
}

func (s *controllerServer) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	return &csi.ControllerGetCapabilitiesResponse{Capabilities: []*csi.ControllerServiceCapability{{
		Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME}},
	}}}, nil
}

// ControllerPublishVolume refuses a disk that another machine still has.
func (s *controllerServer) ControllerPublishVolume(_ context.Context, r *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if has := s.owner[r.VolumeId]; has != "" && has != r.NodeId {
		err := status.Errorf(codes.FailedPrecondition, "disk %s is attached to %s", r.VolumeId, has)
		return nil, s.write("publish", r.VolumeId, r.NodeId, err)
	}
	s.owner[r.VolumeId] = r.NodeId
	return &csi.ControllerPublishVolumeResponse{}, s.write("publish", r.VolumeId, r.NodeId, nil)
}

// ControllerUnpublishVolume takes a disk from a machine; it is idempotent.
func (s *controllerServer) ControllerUnpublishVolume(_ context.Context, r *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owner[r.VolumeId] == r.NodeId {
		delete(s.owner, r.VolumeId)
	}
	return &csi.ControllerUnpublishVolumeResponse{}, s.write("unpublish", r.VolumeId, r.NodeId, nil)
}

func (s *controllerServer) write(op, volume, node string, err error) error {
	e := Event{At: time.Now().UTC(), Op: op, Volume: volume, Node: node}
	if err != nil {
		e.Error = err.Error()
	}
	if werr := s.ledger.Encode(e); werr != nil {
		return status.Errorf(codes.Internal, "ledger: %v", werr)
	}
	return err
}
