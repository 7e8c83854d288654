#!/usr/bin/env bash
# Load with faults on a local AWS engine of its own (its data in .local/soak),
# unless CAIRN_TEST_ENDPOINT names one: scripts/soak.sh -for 5m -rate 1 -n 100.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/own-engine.sh soak
go build -o .local/soak/ ./internal/soak ./cmd/cairn
.local/soak/soak -cairn .local/soak/cairn "$@"
