#!/bin/sh
# Builds weft_device_check as a machine with a compiler alone would, records launches for it, and runs it on a fake
# device. Fails where a header of a package was read, or where the program finds something.
#
#   tools/check_device_check.sh CHECK_LAUNCHES FOLDER
set -eu
cd "$(dirname "$0")/.."
recorder=$1 folder=$2

CXXFLAGS=-MD tools/build_device_check.sh --fake-only "$folder"
foreign=$(cat "$folder"/objects/*.d | tr ' ' '\n' | grep -E '^/usr/(local/)?include/[^/]*/' |
  grep -vE '^/usr/include/(c\+\+|linux|asm-generic|[a-z0-9_]*-linux-gnu)/' | sort -u || true)
if [ -n "$foreign" ]; then
  echo "weft_device_check must build of the tree and the compiler alone, but reads:"
  echo "$foreign"
  exit 1
fi
"$recorder" tests/data/ops "$folder/launches.bin"
"$folder/weft_device_check" --fake --json "$folder/device_check.json" --table "$folder/device_check.md" >"$folder/log" || {
  grep -E "FAILED|\| failed|not run" "$folder/log"
  exit 1
}
grep "^Recorded launches" "$folder/log" | sed 's/^/count: /'
