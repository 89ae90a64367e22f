#!/bin/sh
# Builds Cutout from the sources in this folder and copies what is needed to run it into another.
#   build.sh FOLDER [cuda12 DIGEST]     in a Debian with Node.js; installs what the build needs
# All downloads are verified: Debian's packages by their signatures, npm's by the lockfile, the GPU providers by DIGEST
# (check.sh), because the package that downloads them does not.
set -eu
out=$1
accelerator=${2:-}
providers=${3:-}

apt-get update
apt-get install --yes --no-install-recommends ca-certificates g++ cmake make
npm run --silent setup
npm prune --omit=dev --no-audit --no-fund --silent

mkdir -p "$out/build/native/Release" "$out/build/ts" "$out/deploy"
cp -r bin models package.json LICENSE node_modules "$out"
cp -r deploy/image "$out/deploy/image"
install -D -m 644 scripts/setup/cuda.txt "$out/scripts/setup/cuda.txt"
cp -r build/ts/src "$out/build/ts/src"
cp -r build/web "$out/build/web"
cp build/native/Release/cutout.node "$out/build/native/Release"

# Only the libraries of ONNX Runtime and SQLite for this machine are needed.
cd "$out/node_modules"
runtime=onnxruntime-node/bin/napi-v6
arch=$(node -p process.arch)
if [ -n "$accelerator" ]; then
  # The package's own script downloads the providers of its version.
  (cd onnxruntime-node && node script/install.js "--onnxruntime-node-install=$accelerator")
  sh "$out/deploy/image/check.sh" "$providers" "$runtime/linux/$arch"/libonnxruntime_providers_*.so
fi
find "$runtime" -mindepth 1 -maxdepth 1 ! -name linux -exec rm -r {} +
find "$runtime/linux" -mindepth 1 -maxdepth 1 ! -name "$arch" -exec rm -r {} +
rm -f "$runtime/linux/$arch/onnxruntime_binding.node"
rm -rf better-sqlite3/deps better-sqlite3/src
find better-sqlite3/prebuilds -type f ! -name "linux-$arch.node" -delete
# Not needed: copies of the code for bundlers and browsers, declarations, source maps.
find @opentelemetry -type d \( -name esm -o -name esnext \) -path '*/build/*' -prune -exec rm -r {} +
find . -type f \( -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' -o -name '*.map' \) -delete
chmod -R a+rX "$out"
