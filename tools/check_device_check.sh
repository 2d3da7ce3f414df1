#!/bin/sh
# Packs weft_device_check, builds it of the archive as a machine with a compiler alone would, and runs it on a fake device
# with the launches that were packed. Fails where a header of a package or of this tree was read, or where the program
# finds something.
#
#   tools/check_device_check.sh CHECK_LAUNCHES FOLDER
set -eu
cd "$(dirname "$0")/.."
root=$PWD recorder=$1 folder=$2

rm -rf "$folder"
mkdir -p "$folder"
tools/pack_device_check.sh "$recorder" "$folder/weft_device_check.tar.gz"
tar xf "$folder/weft_device_check.tar.gz" -C "$folder"
cd "$folder/weft_device_check"
CXXFLAGS=-MD tools/build_device_check.sh --fake-only
built=build/device_check
foreign=$(cat $built/objects/*.d | tr ' ' '\n' | grep -E "^(/usr/(local/)?include/[^/]*/|$root/(src|apps|tests|include)/)" |
  grep -vE '^/usr/include/(c\+\+|linux|asm-generic|[a-z0-9_]*-linux-gnu)/' | sort -u || true)
if [ -n "$foreign" ]; then
  echo "weft_device_check must build of its archive and the compiler alone, but reads:"
  echo "$foreign"
  exit 1
fi
$built/weft_device_check --fake --json device_check.json --table device_check.md >log || {
  grep -E "FAILED|\| failed|not run" log
  exit 1
}
grep "^Recorded launches" log | sed 's/^/count: /'
