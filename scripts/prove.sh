#!/usr/bin/env bash
# Simulation for the time given and linearizability of a million calls over the
# memory store and of some over a local AWS engine, started for the run unless
# CAIRN_TEST_ENDPOINT names one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/own-engine.sh prove
go test ./internal/simulation -count=1 -v -timeout 0 -run 'TestSimulation|TestLinearizable' -for "${1:-10m}" -operations 1000000
