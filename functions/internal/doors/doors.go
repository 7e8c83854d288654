package doors

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/cairnstate/cairn/shared/recovery"
	recoveryaws "github.com/cairnstate/cairn/shared/recovery/aws"
	"github.com/cairnstate/cairn/shared/recovery/https"
	"github.com/cairnstate/cairn/shared/wiring"
)

// Optional variables.
const (
	// VarResolverHosts are the hosts that https resolvers may be on, separated by
	// commas, and VarResolverKey signs the questions to them (base64, at least 16
	// bytes): both or none. Without them an https resolver answers nothing.
	VarResolverHosts = "CAIRN_RESOLVER_HOSTS"
	VarResolverKey   = "CAIRN_RESOLVER_KEY"
	// VarEventBus takes what operators should hear of (parked, contradictions); not
	// set: only metrics and logs tell.
	VarEventBus = "CAIRN_EVENT_BUS"
)

// Open opens what recovery talks to besides the stores. It makes no call; a half
// configured door is an error naming the variables.
func Open(out *wiring.Outside, cfg aws.Config) error {
	functions := recoveryaws.NewFunctions(cfg)
	out.Resolvers = map[string]recovery.Resolver{"lambda": functions}
	out.Migrator = functions
	out.Target = recoveryaws.NewTargets(cfg)
	if bus := os.Getenv(VarEventBus); bus != "" {
		out.Emit = recoveryaws.Publish(cfg, bus)
	}
	hosts, key := os.Getenv(VarResolverHosts), os.Getenv(VarResolverKey)
	if hosts == "" && key == "" {
		return nil
	}
	if hosts == "" || key == "" {
		return fmt.Errorf("%s and %s belong together: only one is set", VarResolverHosts, VarResolverKey)
	}
	secret, err := base64.StdEncoding.DecodeString(key)
	if err != nil {
		return fmt.Errorf("%s is no base64", VarResolverKey)
	}
	web, err := https.New(https.Options{Hosts: strings.Split(hosts, ","), Key: secret, Now: time.Now})
	if err != nil {
		return fmt.Errorf("%s, %s: %w", VarResolverHosts, VarResolverKey, err)
	}
	out.Resolvers["https"] = web
	return nil
}
