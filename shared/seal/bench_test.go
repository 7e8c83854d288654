package seal_test

import (
	"context"
	"fmt"
	"testing"
)

func BenchmarkSeal(b *testing.B) {
	for _, n := range []int{1 << 10, 16 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKB", n>>10), func(b *testing.B) {
			h := newBench(b)
			s, plain := h.sealer(), text(n)
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for b.Loop() {
				out, err := s.Seal(context.Background(), place(), plain)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(len(out)), "stored-bytes")
			}
		})
	}
}

func BenchmarkOpen(b *testing.B) {
	for _, n := range []int{1 << 10, 16 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKB", n>>10), func(b *testing.B) {
			h := newBench(b)
			s := h.sealer()
			sealed := h.seal(s, place(), string(text(n)))
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Open(context.Background(), place(), sealed); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkToken(b *testing.B) {
	s := newBench(b).sealer()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Token(context.Background(), "bank", "subject", "customer 4711"); err != nil {
			b.Fatal(err)
		}
	}
}
