#!/bin/sh
# Fails when a tracked source is not as clang-format 14 would write it; --fix rewrites it instead.
set -eu
cd "$(dirname "$0")/.."

case "${1:-}" in
  "") mode="--dry-run -Werror" ;;
  --fix) mode="-i" ;;
  *)
    echo "usage: tools/check_format.sh [--fix]" >&2
    exit 2
    ;;
esac
# Also what is new and not yet added.
git ls-files -z --cached --others --exclude-standard -- '*.h' '*.cpp' '*.cu' '*.cuh' ':!tests/data' |
  xargs -0 -n 8 -P "$(nproc)" clang-format-14 $mode
echo "format: $(git ls-files --cached --others --exclude-standard -- '*.h' '*.cpp' '*.cu' '*.cuh' ':!tests/data' | wc -l) files"
