#!/bin/sh
# Runs every fuzz target of build/fuzz for the seconds given, on the seeds of fuzz/corpus/<name> and what earlier runs
# found (build/fuzz/corpus/<name>), with the words of fuzz/<name>.dict if there is one. Prints the number of executions
# of each; fails when one found something, with the input left in build/fuzz/findings.
set -eu
cd "$(dirname "$0")/.."
seconds="${1:-60}"

mkdir -p build/fuzz/findings build/fuzz/logs
failed=""
count=0
for target in build/fuzz/fuzz/*; do
  [ -x "$target" ] || continue
  name="$(basename "$target")"
  found="build/fuzz/corpus/$name"
  mkdir -p "$found" "fuzz/corpus/$name"
  log="build/fuzz/logs/$name.log"
  words=""
  [ ! -f "fuzz/$name.dict" ] || words="-dict=fuzz/$name.dict"
  count=$((count + 1))
  if "$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -max_len=65536 $words -print_final_stats=1 \
    -artifact_prefix="build/fuzz/findings/$name-" "$found" "fuzz/corpus/$name" >"$log" 2>&1; then
    verdict="clean"
  else
    verdict="FAILED"
    failed="$failed $name"
    tail -n 60 "$log"
  fi
  executions="$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")"
  echo "fuzz: $name: ${executions:-unknown} executions in $seconds s, $(ls "$found" | wc -l) inputs kept: $verdict"
done

echo "fuzz: $count targets, failed:${failed:- none}"
[ "$count" != 0 ] && [ -z "$failed" ]
