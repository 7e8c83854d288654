#!/usr/bin/env bash
# Starts and stops the local AWS engine without Docker; needs Python 3.11 or later.
#
#   localstack/engine.sh up [--port N]   start (0: a free port) and wait until it answers
#   localstack/engine.sh wait [seconds]  wait until it answers (default 60)
#   localstack/engine.sh status          exit 0 and print the endpoint while it answers
#   localstack/engine.sh down            stop it; its data is gone
#
# The port is --port, else $CAIRN_ENGINE_PORT, else 4566; it listens on loopback
# only. Everything it needs and writes lives in .local/ of this checkout, so
# checkouts do not disturb each other:
#   .local/engine.env      endpoint and test credentials, for `set -a; . .local/engine.env`
#   .local/engine/venv     the pinned engine (requirements.txt)
#   .local/engine/log      what the engine said since the last start
# CAIRN_ENGINE_HOME=<absolute path> takes its place for a second engine beside it.
# `up` on a running engine changes nothing, whatever port is asked for.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
local_dir=${CAIRN_ENGINE_HOME:-$(dirname "$here")/.local}
dir=$local_dir/engine
env_file=$local_dir/engine.env
pid_file=$dir/pid
python=${CAIRN_PYTHON:-python3}

say() { printf 'engine: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# pid prints the engine's process id if it is really ours: a pid file may
# outlive its process, and the number may be another's by now.
pid() {
  local p
  p=$(cat "$pid_file" 2>/dev/null) && [ -n "$p" ] || return 1
  case "$(ps -o args= -p "$p" 2>/dev/null)" in
    *"$dir/venv/"*) printf '%s\n' "$p" ;;
    *) return 1 ;;
  esac
}

endpoint() { sed -n 's/^AWS_ENDPOINT_URL=//p' "$env_file" 2>/dev/null; }

answers() {
  local url
  url=$(endpoint) && [ -n "$url" ] || return 1
  "$python" - "$url/_ministack/health" <<'PY' 2>/dev/null
import sys, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
sys.exit(0 if opener.open(sys.argv[1], timeout=2).status == 200 else 1)
PY
}

free_port() {
  "$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

port_taken() {
  "$python" - "$1" <<'PY'
import socket, sys
s = socket.socket()
s.settimeout(1)
sys.exit(s.connect_ex(("127.0.0.1", int(sys.argv[1]))) != 0)
PY
}

install() {
  local want have
  want=$(cksum < "$here/requirements.txt")
  have=$(cat "$dir/venv/installed" 2>/dev/null || true)
  [ "$want" = "$have" ] && [ -x "$dir/venv/bin/ministack" ] && return
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || die "$python is older than 3.11 (set CAIRN_PYTHON)"
  say "installing the pinned engine"
  rm -rf "$dir/venv"
  "$python" -m venv "$dir/venv"
  "$dir/venv/bin/pip" install -q --disable-pip-version-check --no-deps -r "$here/requirements.txt"
  printf '%s\n' "$want" > "$dir/venv/installed" # last: a broken install is done again
}

start() {
  local port=$1
  rm -rf "$dir/tmp"
  mkdir -p "$dir/tmp"
  cat > "$env_file" <<ENV
AWS_ENDPOINT_URL=http://127.0.0.1:$port
AWS_REGION=us-east-1
AWS_ACCESS_KEY_ID=test
AWS_SECRET_ACCESS_KEY=test
CAIRN_TEST_ENDPOINT=http://127.0.0.1:$port
ENV
  local detach=(nohup)
  command -v setsid >/dev/null 2>&1 && detach=(setsid nohup)
  # A proxy or a CA bundle of the developer's machine has no business between
  # the engine and the functions it starts. They find it by AWS_ENDPOINT_URL,
  # which it hands on from its own environment.
  env -u AWS_CA_BUNDLE -u HTTP_PROXY -u HTTPS_PROXY -u http_proxy -u https_proxy \
    AWS_ENDPOINT_URL="http://127.0.0.1:$port" GATEWAY_PORT="$port" BIND_HOST=127.0.0.1 SFTP_ENABLED=0 IOT_MTLS_ENABLED=0 \
    TMPDIR="$dir/tmp" STATE_DIR="$dir/tmp/state" S3_DATA_DIR="$dir/tmp/s3" \
    "${detach[@]}" "$dir/venv/bin/python" "$dir/venv/bin/ministack" > "$dir/log" 2>&1 < /dev/null 9>&- &
  printf '%s\n' "$!" > "$pid_file"
}

wait_ready() {
  local deadline=$((SECONDS + $1))
  until answers; do
    pid >/dev/null || { tail -n 20 "$dir/log" >&2 || true; die "it ended; see $dir/log"; }
    [ "$SECONDS" -lt "$deadline" ] || die "no answer within $1 s; see $dir/log"
    sleep 0.2
  done
}

up() {
  local port=${CAIRN_ENGINE_PORT:-4566}
  while [ $# -gt 0 ]; do
    case $1 in
      --port) [ $# -gt 1 ] || die "--port needs a number"; port=$2; shift 2 ;;
      --port=*) port=${1#*=}; shift ;;
      *) die "unknown option $1" ;;
    esac
  done
  case $port in ''|*[!0-9]*) die "port $port is not a number" ;; esac
  mkdir -p "$dir"
  printf "*\n" > "$local_dir/.gitignore" # nothing here is ever committed
  exec 9> "$dir/lock"
  if command -v flock >/dev/null 2>&1; then flock 9; fi # two starts at once: one engine
  if ! pid >/dev/null; then
    install
    if [ "$port" = 0 ]; then port=$(free_port); fi
    if port_taken "$port"; then die "port $port is taken by another process; try --port 0"; fi
    start "$port"
  fi
  wait_ready 60
  endpoint
}

down() {
  local p
  if p=$(pid); then
    kill "$p" 2>/dev/null || true
    for _ in $(seq 50); do
      pid >/dev/null || break
      sleep 0.1
    done
    if pid >/dev/null; then kill -9 "$p" 2>/dev/null || true; fi
  fi
  rm -rf "$pid_file" "$env_file" "$dir/tmp"
}

case ${1:-} in
  up) shift; up "$@" ;;
  wait)
    pid >/dev/null || die "not running"
    wait_ready "${2:-60}"
    endpoint ;;
  status)
    if pid >/dev/null && answers; then endpoint; else say "not running"; exit 1; fi ;;
  down) down ;;
  *) sed -n '2,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" | sed '/^set /d' >&2; exit 2 ;;
esac
