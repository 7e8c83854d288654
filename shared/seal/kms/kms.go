// Package kms is the seal.KMS on AWS KMS.
//
// Errors are *store.Error as seal.KMS says. A key that may not be used
// (AccessDeniedException) counts as KeyTrouble like one that cannot be:
// nobody gets plain text either way, and an operator must look at the key.
// Nothing here logs or keeps key material.
package kms

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"

	"github.com/cairnstate/cairn/shared/seal"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/awscall"
)

// attemptTimeout bounds one attempt.
const attemptTimeout = 5 * time.Second

// KMS wraps and unwraps data keys. Make it with New; safe for concurrent use.
type KMS struct {
	client *kms.Client
	clock  *awscall.Clock
}

var _ seal.KMS = (*KMS)(nil)

// New uses client, which comes from NewClient; clock is shared by the stores
// of a process.
func New(client *kms.Client, clock *awscall.Clock) *KMS { return &KMS{client, clock} }

// NewClient makes a client that KMS can work with. opts come last.
func NewClient(cfg aws.Config, opts ...func(*kms.Options)) *kms.Client {
	return kms.NewFromConfig(cfg, append([]func(*kms.Options){func(o *kms.Options) {
		o.HTTPClient = awscall.HTTPClient(cfg.HTTPClient, attemptTimeout)
		o.HTTPSignerV4 = awscall.Signer(v4.NewSigner())
		o.Retryer = awscall.NewRetryer()
		o.APIOptions = append(o.APIOptions, awscall.Middleware)
	}}, opts...)...)
}

// GenerateDataKey is in seal.KMS. Lost or landed makes no difference: a key
// that nobody received wraps nothing.
func (k *KMS) GenerateDataKey(ctx context.Context, keyID string, encCtx map[string]string) (plain, wrapped []byte, err error) {
	ctx, call, err := awscall.Begin(ctx, k.clock, awscall.Call{Name: "kms_generate", Key: keyID, KMS: true})
	if err != nil {
		return nil, nil, err
	}
	out, err := k.client.GenerateDataKey(ctx, &kms.GenerateDataKeyInput{
		KeyId: &keyID, KeySpec: types.DataKeySpecAes256, EncryptionContext: encCtx,
	})
	if err != nil {
		return nil, nil, call.Fail(err)
	}
	if len(out.Plaintext) != 32 || len(out.CiphertextBlob) == 0 {
		return nil, nil, call.Refuse(store.Unavailable, "BadAnswer")
	}
	return out.Plaintext, out.CiphertextBlob, nil
}

// Encrypt is in seal.KMS.
func (k *KMS) Encrypt(ctx context.Context, keyID string, plain []byte, encCtx map[string]string) ([]byte, error) {
	ctx, call, err := awscall.Begin(ctx, k.clock, awscall.Call{Name: "kms_encrypt", Key: keyID, KMS: true})
	if err != nil {
		return nil, err
	}
	out, err := k.client.Encrypt(ctx, &kms.EncryptInput{KeyId: &keyID, Plaintext: plain, EncryptionContext: encCtx})
	if err != nil {
		return nil, call.Fail(err)
	}
	return out.CiphertextBlob, nil
}

// Decrypt is in seal.KMS. The key is named, so a blob wrapped under another
// key is refused (IncorrectKeyException).
func (k *KMS) Decrypt(ctx context.Context, keyID string, wrapped []byte, encCtx map[string]string) ([]byte, error) {
	ctx, call, err := awscall.Begin(ctx, k.clock, awscall.Call{Name: "kms_decrypt", Key: keyID, KMS: true})
	if err != nil {
		return nil, err
	}
	if len(wrapped) == 0 {
		return nil, call.Refuse(store.Invalid, "InvalidCiphertextException") // as KMS would, after a round trip
	}
	out, err := k.client.Decrypt(ctx, &kms.DecryptInput{KeyId: &keyID, CiphertextBlob: wrapped, EncryptionContext: encCtx})
	if err != nil {
		return nil, call.Fail(err)
	}
	return out.Plaintext, nil
}

// CreateKey makes a key for local engines and tests and returns its ARN; in a
// deployment the stack makes it.
func CreateKey(ctx context.Context, client *kms.Client) (string, error) {
	out, err := client.CreateKey(ctx, &kms.CreateKeyInput{})
	if err != nil {
		return "", err
	}
	return aws.ToString(out.KeyMetadata.Arn), nil
}
