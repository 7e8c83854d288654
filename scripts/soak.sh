#!/usr/bin/env bash
# Load with faults on a local AWS engine of its own (its data in .local/soak),
# unless CAIRN_TEST_ENDPOINT names one: scripts/soak.sh -for 5m -rate 1 -n 100.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [ -z "${CAIRN_TEST_ENDPOINT:-}" ]; then
  export CAIRN_ENGINE_HOME=$PWD/.local/soak
  localstack/engine.sh up --port 0
  trap 'localstack/engine.sh down' EXIT
  CAIRN_TEST_ENDPOINT=$(localstack/engine.sh status)
fi
export CAIRN_TEST_ENDPOINT
go build -o .local/soak/ ./internal/soak ./cmd/cairn
.local/soak/soak -cairn .local/soak/cairn "$@"
