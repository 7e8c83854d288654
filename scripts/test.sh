#!/usr/bin/env bash
# Runs the tests of the packages given (default all) with the race detector, on
# the local AWS engine too: started for the run on a free port unless
# CAIRN_TEST_ENDPOINT names one. Skips are counted and named at the end.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
packages=("$@")
[ ${#packages[@]} -gt 0 ] || packages=(./...)

if [ -z "${CAIRN_TEST_ENDPOINT:-}" ]; then
  if localstack/engine.sh status >/dev/null 2>&1; then
    CAIRN_TEST_ENDPOINT=$(localstack/engine.sh status)
  else
    localstack/engine.sh up --port 0
    trap 'localstack/engine.sh down' EXIT
    CAIRN_TEST_ENDPOINT=$(localstack/engine.sh status)
  fi
fi
export CAIRN_TEST_ENDPOINT
echo "local engine: $CAIRN_TEST_ENDPOINT"
go run gotest.tools/gotestsum@v1.13.0 --format pkgname --hide-summary=output -- -race -timeout 20m "${packages[@]}"
