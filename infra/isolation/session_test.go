package isolation

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"testing"

	"github.com/cairnstate/cairn/shared/config"
	"github.com/cairnstate/cairn/shared/store"
	"github.com/cairnstate/cairn/shared/store/tenancy"
)

// stores are those of a process with the user's rights and this tenant role.
func (e *engine) stores(user credentials, role, bucket string) config.Stores {
	e.t.Helper()
	env := map[string]string{
		"CAIRN_TABLE": "main", "CAIRN_KEY_TABLE": "keys", "CAIRN_BUCKET": bucket, "CAIRN_DATA_KEY": "alias/cairn", "AWS_REGION": "us-east-1",
		"AWS_ENDPOINT_URL": e.endpoint, "AWS_ACCESS_KEY_ID": user.key, "AWS_SECRET_ACCESS_KEY": user.secret,
	}
	if role != "" {
		env["CAIRN_TENANT_ROLE"] = "arn:aws:iam::" + e.account + ":role/" + role
	}
	getenv := func(name string) string { return env[name] }
	c, err := config.Load(getenv)
	if err != nil {
		e.t.Fatal(err)
	}
	return c.Stores(c.Lambda(getenv))
}

func put(ctx context.Context, b store.Bucket, key string) error {
	body := []byte("content")
	_, err := b.Put(ctx, store.PutObject{Key: key, Body: bytes.NewReader(body), Bytes: int64(len(body)), SHA256: sha256.Sum256(body)})
	return err
}

// The stores of a function that may do nothing but take a session reach the
// session's tenant, and the engine's IAM refuses any other.
func TestStoresUseSessions(t *testing.T) {
	e := newEngine(t)
	result := template(t)
	bucket := "sessions-" + e.account
	if status, body := e.call(e.root, "s3", "PUT", "/"+bucket, ""); status != 200 {
		t.Fatalf("bucket: %d %s", status, body)
	}
	function := e.user("function", map[string]any{"Effect": "Allow", "Action": []string{"sts:AssumeRole", "sts:TagSession"}, "Resource": "*"})
	e.tenantRole(result, "Retention", bucket, "arn:aws:iam::"+e.account+":user/function", "acme")
	s := e.stores(function, "tenant-acme", bucket)
	acme := tenancy.With(t.Context(), "acme")
	if err := put(acme, s.Bucket, "acme/e/1"); err != nil {
		t.Fatalf("its own: %v", err)
	}
	content, _, _, err := s.Bucket.Get(acme, store.GetObject{Key: "acme/e/1"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(content)
	content.Close()
	if err != nil || string(text) != "content" {
		t.Errorf("%q, %v", text, err)
	}
	if page, _, err := s.Bucket.List(acme, store.ListObjects{Prefix: "acme/"}); err != nil || len(page.Objects) != 1 {
		t.Errorf("list: %+v, %v", page, err)
	}
	// The role is acme's alone here, so a session for another tenant proves that
	// IAM refuses: the stores themselves see nothing wrong.
	for _, other := range []string{"globex", "acme-eu"} {
		ctx := tenancy.With(t.Context(), other)
		if err := put(ctx, s.Bucket, other+"/e/1"); store.KindOf(err) != store.Denied {
			t.Errorf("%s puts: %v", other, err)
		}
		if _, _, err := s.Bucket.List(ctx, store.ListObjects{Prefix: other + "/"}); store.KindOf(err) != store.Denied {
			t.Errorf("%s lists: %v", other, err)
		}
	}
	// Without the tenant role the function itself reaches nothing.
	if err := put(t.Context(), e.stores(function, "", bucket).Bucket, "acme/e/2"); store.KindOf(err) != store.Denied {
		t.Errorf("with the function's own rights: %v", err)
	}
	// Nor does somebody who may not take the role.
	stranger := e.user("stranger", map[string]any{"Effect": "Allow", "Action": []string{"sts:AssumeRole", "sts:TagSession"}, "Resource": "*"})
	if err := put(acme, e.stores(stranger, "tenant-acme", bucket).Bucket, "acme/e/3"); err == nil {
		t.Error("a stranger got a session")
	}
}
