#!/usr/bin/env bash
# Runs the tests of tenant isolation (infra/isolation) against an engine of their
# own that evaluates IAM; the developer's engine is left alone.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export CAIRN_ENGINE_HOME=$root/.local/auth
mkdir -p "$CAIRN_ENGINE_HOME/engine"
# The same pinned programs, if they are installed already.
if [ -d "$root/.local/engine/venv" ] && [ ! -e "$CAIRN_ENGINE_HOME/engine/venv" ]; then
  ln -s "$root/.local/engine/venv" "$CAIRN_ENGINE_HOME/engine/venv"
fi
trap '"$root/localstack/engine.sh" down' EXIT
CAIRN_AUTH_ENDPOINT=$(AUTH=true "$root/localstack/engine.sh" up --port 0)
export CAIRN_AUTH_ENDPOINT
cd "$root/infra"
go test -count=1 ./isolation
