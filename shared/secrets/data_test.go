package secrets

import (
	"encoding/base64"
	"math/rand/v2"
	"strings"
	"testing"
)

// In megabytes of encoded bytes every short form occurs by chance (case S1: an
// agent keeps screenshots in its state).
func TestEncodedBytesAreNoCredentials(t *testing.T) {
	t.Parallel()
	key := "AIza" + "SyA-0123456789abcdefghijklmnopqrstu"[:35]
	if _, ok := find(`key="`+key+`"`, 0); !ok {
		t.Fatal("the key by itself is not found")
	}
	noise := strings.Repeat("kIPQKKVexYv+uFneamLIgKsF/l8JZ1I5b9Kx", 4)
	for name, text := range map[string]string{
		"in the middle": noise + "/" + key + "+" + noise,
		"at the end":    noise + "/" + key,
		"at the start":  key + "+" + noise,
	} {
		if at, ok := find(text, 0); ok {
			t.Errorf("%s: %s", name, at.kind)
		}
	}
	if _, ok := find(noise+" "+key+" "+noise, 0); !ok {
		t.Error("a key between encoded bytes is not found")
	}
	if _, ok := find("https://example.com/?key="+key+"&x=1", 0); !ok {
		t.Error("a key in a URL is not found")
	}
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 3<<20)
	for range 8 {
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
			if at, ok := find(enc.EncodeToString(b), 0); ok {
				t.Errorf("random bytes: %s", at.kind)
			}
		}
	}
}
