#!/usr/bin/env bash
# Benchmarks: times as ratios to raw SDK calls on the local engine in the same
# run, then the packages' own. An idle machine gives the true figures.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [ -z "${CAIRN_TEST_ENDPOINT:-}" ]; then
  localstack/engine.sh up --port 0
  trap 'localstack/engine.sh down' EXIT
  CAIRN_TEST_ENDPOINT=$(localstack/engine.sh status)
fi
export CAIRN_TEST_ENDPOINT
CAIRN_BENCH=1 go test ./internal/bench -count=1 -v -run . | grep -v '^=== '
go test ./shared/... ./client/... -run '^$' -bench . -benchmem | grep -E '^(Benchmark|pkg:|FAIL)'
