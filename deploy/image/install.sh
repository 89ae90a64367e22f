#!/bin/sh
# Prepares the system to run /opt/cutout: libraries, user, data folder.
#   install.sh [NETWORK…]     networks to pull into the image
set -eu

apt-get update
# jemalloc returns freed memory to the system, the certificates are for image_url, libstdc++ for the addon.
apt-get install --yes --no-install-recommends ca-certificates libjemalloc2 libstdc++6
apt-get clean
rm -rf /var/lib/apt/lists/*

group=10001
getent group "$group" >/dev/null || groupadd --system --gid "$group" cutout
useradd --system --uid 10001 --gid "$group" --home-dir /data --shell /usr/sbin/nologin cutout
install -d -o 10001 -g "$group" -m 0700 /data

for network in "$@"; do
  CUTOUT_MODELS_DIR=/opt/cutout/networks /opt/cutout/deploy/image/entrypoint.sh models pull "$network"
done
rm -rf /tmp/npm
chmod -R a+rX /opt/cutout
chmod a+x /opt/cutout/deploy/image/entrypoint.sh
