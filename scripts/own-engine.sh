# Sourced with a name: CAIRN_TEST_ENDPOINT is a local AWS engine of the run's own (its
# data in .local/<name>), stopped when the script ends, unless it names one already.
if [ -z "${CAIRN_TEST_ENDPOINT:-}" ]; then
  export CAIRN_ENGINE_HOME=$PWD/.local/$1
  localstack/engine.sh up --port 0
  trap 'localstack/engine.sh down' EXIT
  CAIRN_TEST_ENDPOINT=$(localstack/engine.sh status)
fi
export CAIRN_TEST_ENDPOINT
