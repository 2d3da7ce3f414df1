#!/bin/sh
# Packs what a machine with a GPU needs to check the CUDA kernels there: the sources of weft_device_check and the launches
# that only a whole Weft can record.
#
#   ninja -C build check_launches && tools/pack_device_check.sh [RECORDER [ARCHIVE]]
#       (build/check_launches, weft_device_check.tar.gz)
#
# There, with CUDA 13 and a C++20 compiler (g++ 11 or newer) and no more:
#
#   tar xf weft_device_check.tar.gz && cd weft_device_check
#   tools/build_device_check.sh && build/device_check/weft_device_check --json cuda.json --table cuda.md
set -eu
cd "$(dirname "$0")/.."
recorder=${1:-build/check_launches} archive=${2:-weft_device_check.tar.gz}

staged=$(mktemp -d)
trap 'rm -rf "$staged"' EXIT
to=$staged/weft_device_check
mkdir -p "$to/apps" "$to/tools" "$to/build/device_check"
cp -r apps/device_check "$to/apps"
cp -r src LICENSE "$to"
cp tools/build_device_check.sh tools/device_code.sh "$to/tools"
"$recorder" tests/data/ops "$to/build/device_check/launches.bin" # beside the program, which looks there
tar czf "$archive" -C "$staged" weft_device_check
echo "$archive: $(wc -c <"$archive") bytes"
