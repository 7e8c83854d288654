package artifact

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

func TestVerifyingWriteTo(t *testing.T) {
	t.Parallel()
	wrong := errors.New("wrong")
	for _, n := range []int{0, 1, 1 << 20, 1<<20 + 1, 3<<20 - 5} {
		data := bytes.Repeat([]byte{7, 11, 13}, n/3+1)[:n]
		sum := sha256.Sum256(data)
		for name, c := range map[string]struct {
			from io.Reader
			left int64
			want error
		}{
			"right":  {bytes.NewReader(data), int64(n), nil},
			"slow":   {iotest.HalfReader(bytes.NewReader(data)), int64(n), nil},
			"short":  {bytes.NewReader(data), int64(n) + 1, wrong},
			"long":   {io.MultiReader(bytes.NewReader(data), bytes.NewReader([]byte{1})), int64(n), wrong},
			"broken": {io.MultiReader(bytes.NewReader(data), iotest.ErrReader(io.ErrClosedPipe)), int64(n) + 9, io.ErrClosedPipe},
			"other":  {io.MultiReader(bytes.NewReader(data[:n/2]), bytes.NewReader(bytes.Repeat([]byte{1}, n-n/2))), int64(n), wrong},
		} {
			if name == "other" && n == 0 {
				continue
			}
			var got bytes.Buffer
			v := &verifying{r: io.NopCloser(c.from), left: c.left, digest: hex.EncodeToString(sum[:]), sum: sha256.New(), fail: func(string) error { return wrong }}
			_, err := v.WriteTo(&got)
			if !errors.Is(err, c.want) || c.want == nil && (err != nil || !bytes.Equal(got.Bytes(), data)) {
				t.Errorf("%d bytes, %s: %v, want %v", n, name, err, c.want)
			}
		}
	}
}
