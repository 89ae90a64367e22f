#!/bin/sh
# Exits with 1 unless these files have the expected digest.
#   check.sh DIGEST FILE…     DIGEST: SHA-256 of the list that sha256sum makes of the files, by their names alone
set -eu
expected=$1
shift
list=$(for file in "$@"; do (cd "$(dirname "$file")" && sha256sum "$(basename "$file")"); done)
digest=$(printf '%s\n' "$list" | sha256sum | cut -d ' ' -f 1)
[ "$digest" != "$expected" ] || exit 0
printf '%s\n' "$list" >&2
if [ -z "$expected" ]; then
  echo "These files were downloaded without a known digest. Compare them with a source you trust, then build with PROVIDERS_SHA256=$digest" >&2
else
  echo "These files are not the expected ones: their digest is $digest, not $expected." >&2
fi
exit 1
