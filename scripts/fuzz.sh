#!/usr/bin/env bash
# Runs every fuzz target of the module, one after the other, for the time given
# (20s), or for a number of inputs (4000x).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
budget=${1:-20s}
out=$(mktemp)
trap 'rm -f "$out"' EXIT
for file in $(git grep -l '^func Fuzz' -- '*_test.go' ':!infra'); do
  dir=$(dirname "$file")
  for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/p' "$file"); do
    echo "== $dir $target"
    if ! go test "./$dir" -run '^$' -fuzz "^$target\$" -fuzztime "$budget" 2>&1 | tee "$out"; then
      # Before Go 1.27 the end of the time itself may be reported as a failure
      # (golang/go#75804). What fuzzing finds is always written down.
      if [[ $budget == *x ]] || ! grep -q '^ *context deadline exceeded$' "$out" || grep -qi 'failing input\|panic' "$out"; then
        exit 1
      fi
      echo "   the time was over while an input was being tried: nothing was found"
    fi
  done
done
