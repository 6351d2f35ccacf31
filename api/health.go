package api

import (
	"context"
	"fmt"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"

	pb "github.com/poundlock/poundlock/api/poundlockv1"
)

// Check implements grpchealth.Checker: the process and the service are SERVING
// while a quorum of the cluster's servers is reachable, of any shard where there are
// several: the locks of the others can be had.
func (s *Service) Check(_ context.Context, r *grpchealth.CheckRequest) (*grpchealth.CheckResponse, error) {
	if r.Service != "" && r.Service != pb.LockServiceName {
		return nil, connect.NewError(connect.CodeNotFound,
			fmt.Errorf("no service %.100q: want %q or none", r.Service, pb.LockServiceName))
	}
	if s.isClosing() || s.cluster.healthy() != nil {
		return &grpchealth.CheckResponse{Status: grpchealth.StatusNotServing}, nil
	}
	return &grpchealth.CheckResponse{Status: grpchealth.StatusServing}, nil
}
