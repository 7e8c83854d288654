package storetest

import (
	"testing"
)

// Bucket runs the suite on the bucket that open gives.
func Bucket(t *testing.T, open func(t *testing.T) BucketHarness) {
	h := open(t)
	s := &bucketSuite{BucketHarness: h, suite: suite{lacks: h.Lacks}}
	s.report(t)
	for _, test := range []struct {
		name string
		run  func(*bucketSuite, *testing.T)
	}{
		{"put and get", (*bucketSuite).putAndGet},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(s, t)
		})
	}
}

type bucketSuite struct {
	BucketHarness
	suite
}

func (s *bucketSuite) putAndGet(t *testing.T) {}
