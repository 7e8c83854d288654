package config

import (
	"context"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/aws-sdk-go-v2/service/sts/types"

	"github.com/cairnstate/cairn/shared/seal"
	"github.com/cairnstate/cairn/shared/store/tenancy"
)

// Sessions of tenants.
const (
	sessionTime = time.Hour       // the most that one role may get from another
	sessionSlop = 5 * time.Minute // renewed so long before its end
	maxSessions = 1000            // tenants whose sessions are kept
	tenantTag   = "tenant"        // the session tag that the policies name
	maxName     = 64              // characters of a session's name
)

// sessions gives each call the credentials of the tenant that it is for
// (package tenancy): a session of the tenant role that carries the tenant as its
// tag, so that IAM refuses every other tenant's data. Calls for no tenant get the
// function's own. Safe for concurrent use.
type sessions struct {
	own    aws.CredentialsProvider
	assume func(tenant string) aws.CredentialsProvider

	mu       sync.Mutex
	byTenant map[string]*aws.CredentialsCache
}

func newSessions(cfg aws.Config, role string) *sessions {
	client := sts.NewFromConfig(cfg)
	return &sessions{own: cfg.Credentials, byTenant: map[string]*aws.CredentialsCache{}, assume: func(tenant string) aws.CredentialsProvider {
		return stscreds.NewAssumeRoleProvider(client, role, func(o *stscreds.AssumeRoleOptions) {
			name := "t-" + tenant
			o.RoleSessionName, o.Duration = name[:min(len(name), maxName)], sessionTime
			o.Tags = []types.Tag{{Key: aws.String(tenantTag), Value: &tenant}}
		})
	}}
}

// Retrieve implements aws.CredentialsProvider.
func (s *sessions) Retrieve(ctx context.Context) (aws.Credentials, error) {
	tenant := tenancy.Of(ctx)
	if tenant == "" {
		return s.own.Retrieve(ctx)
	}
	return s.of(tenant).Retrieve(ctx)
}

// of is the cache of a tenant's session. The calls of several requests for one
// tenant wait for the same session.
func (s *sessions) of(tenant string) *aws.CredentialsCache {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.byTenant[tenant]; c != nil {
		return c
	}
	if len(s.byTenant) >= maxSessions {
		for other := range s.byTenant { // any: it is made anew when it is asked for
			delete(s.byTenant, other)
			break
		}
	}
	c := aws.NewCredentialsCache(s.assume(tenant), func(o *aws.CredentialsCacheOptions) { o.ExpiryWindow = sessionSlop })
	s.byTenant[tenant] = c
	return c
}

// boundKMS binds calls to the tenant that their encryption context names.
type boundKMS struct{ inner seal.KMS }

func bindKMS(ctx context.Context, encCtx map[string]string) (context.Context, error) {
	return tenancy.Bind(ctx, "kms", encCtx[tenantTag], encCtx[tenantTag])
}

func (k boundKMS) GenerateDataKey(ctx context.Context, keyID string, encCtx map[string]string) (plain, wrapped []byte, err error) {
	if ctx, err = bindKMS(ctx, encCtx); err != nil {
		return nil, nil, err
	}
	return k.inner.GenerateDataKey(ctx, keyID, encCtx)
}

func (k boundKMS) Encrypt(ctx context.Context, keyID string, plain []byte, encCtx map[string]string) (wrapped []byte, err error) {
	if ctx, err = bindKMS(ctx, encCtx); err != nil {
		return nil, err
	}
	return k.inner.Encrypt(ctx, keyID, plain, encCtx)
}

func (k boundKMS) Decrypt(ctx context.Context, keyID string, wrapped []byte, encCtx map[string]string) (plain []byte, err error) {
	if ctx, err = bindKMS(ctx, encCtx); err != nil {
		return nil, err
	}
	return k.inner.Decrypt(ctx, keyID, wrapped, encCtx)
}
