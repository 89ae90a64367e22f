#!/bin/sh
# `cutout` with what a process must have before it starts (scripts/setup/process.js says why); what is set wins.
cores=$(nproc)
# Without a path: the linker knows where it lies on this machine.
if [ -z "${LD_PRELOAD:-}" ] && ldconfig -p 2>/dev/null | grep -q libjemalloc.so.2; then
  export LD_PRELOAD=libjemalloc.so.2
fi
export MALLOC_ARENA_MAX="${MALLOC_ARENA_MAX:-2}"
export UV_THREADPOOL_SIZE="${UV_THREADPOOL_SIZE:-$((cores > 2 ? cores + 2 : 4))}"
# npm fetches networks and wants somewhere to write.
export npm_config_cache="${npm_config_cache:-/tmp/npm}" npm_config_update_notifier=false
# Networks that were built into the image: prepared where this processor's copy can be kept.
models=${CUTOUT_MODELS_DIR:-${CUTOUT_DATA_DIR:-data}/models}
for network in /opt/cutout/networks/*; do
  [ ! -d "$network" ] || [ -e "$models/${network##*/}" ] || { mkdir -p "$models" && cp -r "$network" "$models"; }
done
# In a checkout on a machine with an older Node.js: the one that its set-up fetched.
[ ! -x /opt/cutout/build/node/bin/node ] || export PATH="/opt/cutout/build/node/bin:$PATH"
exec node --enable-source-maps /opt/cutout/build/ts/src/main.js "$@"
