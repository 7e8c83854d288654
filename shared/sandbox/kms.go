package sandbox

import (
	"context"

	"github.com/cairnstate/cairn/shared/seal"
	"github.com/cairnstate/cairn/shared/seal/local"
	"github.com/cairnstate/cairn/shared/store/memory"
)

// kmsDoor puts the local KMS behind the engine's script and log. The log's key
// names the tenant and the key generation.
type kmsDoor struct {
	engine *memory.Engine
	kms    seal.KMS
}

// newKMS makes the world's key service. Its master secret comes from the
// engine, which a dump holds: make it anew after a load.
func newKMS(e *memory.Engine) seal.KMS {
	master := e.Secret("kms")
	return kmsDoor{e, &local.KMS{Master: master[:]}}
}

func kmsKey(encCtx map[string]string) string { return encCtx["tenant"] + "#" + encCtx["generation"] }

func (d kmsDoor) GenerateDataKey(ctx context.Context, keyID string, encCtx map[string]string) (plain, wrapped []byte, err error) {
	err = d.engine.Door(ctx, local.CallGenerate, kmsKey(encCtx), func() (err error) {
		plain, wrapped, err = d.kms.GenerateDataKey(ctx, keyID, encCtx)
		return err
	})
	if err != nil {
		clear(plain)
		return nil, nil, err
	}
	return plain, wrapped, nil
}

func (d kmsDoor) Encrypt(ctx context.Context, keyID string, plain []byte, encCtx map[string]string) (wrapped []byte, err error) {
	err = d.engine.Door(ctx, local.CallEncrypt, kmsKey(encCtx), func() (err error) {
		wrapped, err = d.kms.Encrypt(ctx, keyID, plain, encCtx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return wrapped, nil
}

func (d kmsDoor) Decrypt(ctx context.Context, keyID string, wrapped []byte, encCtx map[string]string) (plain []byte, err error) {
	err = d.engine.Door(ctx, local.CallDecrypt, kmsKey(encCtx), func() (err error) {
		plain, err = d.kms.Decrypt(ctx, keyID, wrapped, encCtx)
		return err
	})
	if err != nil {
		clear(plain)
		return nil, err
	}
	return plain, nil
}
