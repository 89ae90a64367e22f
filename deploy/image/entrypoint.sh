#!/bin/sh
# Runs `cutout` with the environment it needs before it starts (see scripts/setup/process.js); existing variables take precedence.
cores=$(nproc)
# Without a path: the linker finds it.
if [ -z "${LD_PRELOAD:-}" ] && ldconfig -p 2>/dev/null | grep -q libjemalloc.so.2; then
  export LD_PRELOAD=libjemalloc.so.2
fi
export MALLOC_ARENA_MAX="${MALLOC_ARENA_MAX:-2}"
export UV_THREADPOOL_SIZE="${UV_THREADPOOL_SIZE:-$((cores > 2 ? cores + 2 : 4))}"
# npm downloads networks and needs a writable folder.
export npm_config_cache="${npm_config_cache:-/tmp/npm}" npm_config_update_notifier=false
# Networks built into the image are copied to the volume, where the copy prepared for this processor can be stored.
models=${CUTOUT_MODELS_DIR:-${CUTOUT_DATA_DIR:-data}/models}
for network in /opt/cutout/networks/*; do
  [ ! -d "$network" ] || [ -e "$models/${network##*/}" ] || { mkdir -p "$models" && cp -r "$network" "$models"; }
done
# In a checkout on a machine with an older Node.js: the version that set-up downloaded.
[ ! -x /opt/cutout/build/node/bin/node ] || export PATH="/opt/cutout/build/node/bin:$PATH"
exec node --enable-source-maps /opt/cutout/build/ts/src/main.js "$@"
