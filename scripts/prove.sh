#!/usr/bin/env bash
# Simulation for the time given and linearizability of a million calls over the
# memory store and of some over a local AWS engine, started for the run unless
# CAIRN_TEST_ENDPOINT names one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [ -z "${CAIRN_TEST_ENDPOINT:-}" ]; then
  export CAIRN_ENGINE_HOME=$PWD/.local/prove
  localstack/engine.sh up --port 0
  trap 'localstack/engine.sh down' EXIT
  CAIRN_TEST_ENDPOINT=$(localstack/engine.sh status)
fi
export CAIRN_TEST_ENDPOINT
go test ./internal/simulation -count=1 -v -timeout 0 -run 'TestSimulation|TestLinearizable' -for "${1:-10m}" -operations 1000000
