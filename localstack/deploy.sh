#!/usr/bin/env bash
# Puts the stack of infra/ on the local engine, or takes it away.
#
#   localstack/deploy.sh deploy    bootstrap, build, deploy, switch TTL on
#   localstack/deploy.sh destroy   remove the stack
#
# The engine is $AWS_ENDPOINT_URL, else that of .local/engine.env (engine.sh up);
# only loopback is accepted, so nothing here ever reaches AWS. The functions are
# built for this machine into .local/dist; CAIRN_DIST=<directory> takes others.
# Afterwards .local/stack.env says where everything is, in the variables that
# the functions and the tests read. Deploying again changes what changed.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
outputs=.local/stack.json
stack_env=.local/stack.env

say() { printf 'deploy: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

if [ -z "${AWS_ENDPOINT_URL:-}" ]; then
  [ -f .local/engine.env ] || die "no AWS_ENDPOINT_URL and no .local/engine.env: localstack/engine.sh up"
  set -a; . .local/engine.env; set +a
fi
case "$AWS_ENDPOINT_URL" in
  http://127.0.0.1:*|http://localhost:*) ;;
  *) die "$AWS_ENDPOINT_URL is not on loopback" ;;
esac
export AWS_ENDPOINT_URL AWS_ENDPOINT_URL_S3=${AWS_ENDPOINT_URL_S3:-$AWS_ENDPOINT_URL}
export AWS_REGION=${AWS_REGION:-us-east-1}
export AWS_DEFAULT_REGION=$AWS_REGION
export AWS_ACCESS_KEY_ID=${AWS_ACCESS_KEY_ID:-test} AWS_SECRET_ACCESS_KEY=${AWS_SECRET_ACCESS_KEY:-test}
export JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION=20
export CDK_VALIDATION=${CDK_VALIDATION:-false} # the rules are checked by `make synth` and the tests
export AWS_ENVAR_ALLOWLIST=AWS_REGION,AWS_DEFAULT_REGION,AWS_ACCESS_KEY_ID,AWS_SECRET_ACCESS_KEY # cdklocal drops the others
unset AWS_PROFILE AWS_SESSION_TOKEN HTTP_PROXY HTTPS_PROXY http_proxy https_proxy

cdklocal=localstack/node_modules/.bin/cdklocal
[ -x "$cdklocal" ] || die "no $cdklocal: make local-tools"
PATH=$root/localstack/node_modules/.bin:$PATH
dist=${CAIRN_DIST:-.local/dist}

cdk() {
  "$cdklocal" "$@" --output .local/cdk.out --build true --no-notices --ci \
    -c cairn:dist="$dist" -c cairn:architecture="$(go env GOARCH)" -c cairn:functionPrefix= -c cairn:removalPolicy=destroy -c cairn:tenantRole=true -c cairn:examples=fused
}

# logged runs a step whose hundreds of lines are of interest only when it fails.
logged() {
  local log=.local/cdk-$1.log
  cdk "$@" > "$log" 2>&1 || { grep -v _IN_PROGRESS "$log" | tail -n 40 >&2; die "$1 failed; all of it is in $log"; }
}

# call makes one request of a service's JSON API (the engine does not come with a
# command line): call <service> <target> <body>
call() {
  curl -sS --fail-with-body --aws-sigv4 "aws:amz:$AWS_REGION:$1" --user "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" \
    -H "X-Amz-Target: $2" -H 'Content-Type: application/x-amz-json-1.0' -d "$3" "$AWS_ENDPOINT_URL"
}

# name_outputs turns the stack's outputs into variables.
name_outputs() {
  python3 - "$outputs" "$AWS_ENDPOINT_URL" "$AWS_REGION" <<'PY'
import json, re, sys
names = {"TableName": "CAIRN_TABLE", "KeyTableName": "CAIRN_KEY_TABLE", "BucketName": "CAIRN_BUCKET", "DataKeyArn": "CAIRN_DATA_KEY",
         "DeadLettersUrl": "CAIRN_DEAD_LETTERS", "CheckpointFunction": "CAIRN_CHECKPOINT", "RecoverFunction": "CAIRN_RECOVER",
         "RetentionFunction": "CAIRN_RETENTION", "ExampleMachine": "CAIRN_EXAMPLE_MACHINE", "ExampleLetters": "CAIRN_EXAMPLE_LETTERS",
         "ExampleAgent": "CAIRN_EXAMPLE_AGENT", "ExampleAccounts": "CAIRN_EXAMPLE_ACCOUNTS"}
values = {}
for stack in json.load(open(sys.argv[1])).values():
    for key, value in stack.items():
        values[re.sub(r"^Cairn|[0-9A-F]{8}$", "", key)] = value
missing = [n for n in names if n not in values]
if missing:
    sys.exit("deploy: no outputs " + ", ".join(missing))
print("AWS_ENDPOINT_URL=" + sys.argv[2])
print("AWS_REGION=" + sys.argv[3])
for name, variable in names.items():
    print(variable + "=" + values[name])
PY
}

# bootstrap makes what the CDK needs in an account, unless it is there.
bootstrap() {
  if call ssm AmazonSSM.GetParameter '{"Name":"/cdk-bootstrap/hnb659fds/version"}' > /dev/null 2>&1; then return; fi
  # The engine takes a 12-digit key id for the account.
  case $AWS_ACCESS_KEY_ID in
    [0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]) account=$AWS_ACCESS_KEY_ID ;;
    *) account=000000000000 ;;
  esac
  # Away from cdk.json, which would have it make the app's template first.
  (cd localstack && "$root/$cdklocal" bootstrap "aws://$account/$AWS_REGION" --no-notices --ci) > .local/cdk-bootstrap.log 2>&1 ||
    { tail -n 40 .local/cdk-bootstrap.log >&2; die "bootstrap failed; all of it is in .local/cdk-bootstrap.log"; }
}

deploy() {
  mkdir -p .local
  if [ -z "${CAIRN_DIST:-}" ]; then
    make --no-print-directory dist dist-examples DIST_DIR="$dist" DIST_ARCH="$(go env GOARCH)"
  fi
  bootstrap
  rm -f "$outputs"
  logged deploy --require-approval never --outputs-file "$outputs"
  name_outputs > "$stack_env.new"
  # The engine's CloudFormation leaves TTL out (DIVERGENCES.md). Asking again for
  # what is on already is refused, so look first.
  table=$(sed -n 's/^CAIRN_TABLE=//p' "$stack_env.new")
  if ! call dynamodb DynamoDB_20120810.DescribeTimeToLive "{\"TableName\":\"$table\"}" | grep -q '"ENABLED"'; then
    call dynamodb DynamoDB_20120810.UpdateTimeToLive "{\"TableName\":\"$table\",\"TimeToLiveSpecification\":{\"AttributeName\":\"ttl\",\"Enabled\":true}}" > /dev/null
  fi
  mv "$stack_env.new" "$stack_env"
  say "deployed; $stack_env says where"
}

case "${1:-}" in
  deploy) deploy ;;
  destroy) mkdir -p .local; logged destroy --force; rm -f "$stack_env" "$outputs" ;;
  *) sed -n '2,13s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
