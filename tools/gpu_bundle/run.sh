#!/bin/sh
# Checks GraphScale on this machine's GPU: its tests, the same under compute-sanitizer where that is found, the kernel
# benchmarks, and whole trainings judged by F1. Writes result.json (after every step) and logs/ beside itself.
#   sh run.sh [STEP...]    of: tests memcheck racecheck initcheck synccheck bench wordnet blogcatalog [all]
# LIMIT_S (600) seconds are given to each command. DEVICE=cpu takes the same road on a machine without a GPU.
# Needs a driver, a POSIX shell and coreutils. Exit: 0; 1 a command failed; 5 no GPU that this bundle can use.
# shellcheck disable=SC2086  # $loader is no word or three
set -u
cd "$(dirname "$0")" || exit 1

device=${DEVICE:-cuda}
limit_s=${LIMIT_S:-600}
steps=${*:-tests memcheck racecheck initcheck synccheck bench wordnet blogcatalog}
loader=""
count=0 failed=0

# Standard input as a JSON string.
json_string() {
  tr -d '\000-\010\013-\037\177' | sed 's/\\/\\\\/g; s/"/\\"/g; s/\t/\\t/g' |
    awk 'BEGIN { printf "\"" } { printf "%s%s", (NR > 1 ? "\\n" : ""), $0 } END { printf "\"" }'
}

# The files that exist of those named, as elements of a JSON array.
json_elements() {
  separator=""
  for file in "$@"; do
    [ -s "$file" ] || continue
    printf '%s\n    ' "$separator"
    cat "$file"
    separator=,
  done
}

write_result() {
  {
    printf '{\n  "commit": %s,\n' "$(json_string <COMMIT)"
    printf '  "date": "%s",\n  "device": "%s",\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$device"
    printf '  "machine": %s,\n' "$(cat logs/machine.json)"
    printf '  "steps": [%s\n  ],\n' "$(json_elements logs/*.step)"
    printf '  "bench": [%s\n  ],\n' "$(sed '$!s/$/,/' logs/bench.jsonl 2>/dev/null)"
    printf '  "classify": {%s\n  },\n' "$(json_elements logs/*.f1)"
    printf '  "failed": %d\n}\n' $failed
  } >result.json.part && mv result.json.part result.json
}

# record NAME STATUS SECONDS COMMAND: one element of "steps"; its output is in logs/NAME.log.
record() {
  count=$((count + 1))
  printf '{"name": "%s", "status": %s, "seconds": %s, "command": %s, "output_tail": %s}' "$1" "$2" "$3" \
    "$(printf '%s' "$4" | json_string)" "$(tail -n 40 "logs/$1.log" | json_string)" \
    >"$(printf 'logs/%03d.step' $count)"
  write_result
}

# step NAME OUT COMMAND...: runs the command within the time limit, its stdout to OUT (or to the log where that is -).
step() {
  name=$1 out=$2
  shift 2
  echo "$name: $*"
  start=$(date +%s)
  if [ "$out" = - ]; then
    timeout -k 10 "$limit_s" "$@" >"logs/$name.log" 2>&1
  else
    timeout -k 10 "$limit_s" "$@" >"$out" 2>"logs/$name.log"
  fi
  status=$?
  seconds=$(($(date +%s) - start))
  if [ $status -ne 0 ]; then
    failed=$((failed + 1))
    tail -n 5 "logs/$name.log"
    echo "$name: FAILED, exit status $status after $seconds s (124: the limit of $limit_s s)"
  fi
  record "$name" $status $seconds "$*"
  return $status
}

# skip NAME REASON
skip() {
  echo "$1: skipped, $2"
  echo "$2" >"logs/$1.log"
  record "$1" null 0 ""
}

# tests PREFIX COMMAND...: the tests of this device in every test program, each under COMMAND.
tests() {
  prefix=$1
  shift
  case $device in
    cuda) filter='*cuda*:*Cuda*' ;;
    *) filter="*$device*" ;;
  esac
  for program in *_test; do
    if $loader "./$program" --gtest_list_tests --gtest_filter="$filter" | grep -q '^  '; then
      step "$prefix$program" - "$@" $loader "./$program" --gtest_filter="$filter"
    fi
  done
}

sanitize() {
  if [ -n "$sanitizer" ]; then
    tests "$1-" "$sanitizer" --tool "$1" --error-exitcode 9
  else
    skip "$1" "there is no compute-sanitizer on PATH or in /usr/local/cuda/bin"
  fi
}

# train GRAPH CONFIG SEEDS LABELS
train() {
  if [ ! -d "data/$1" ]; then
    skip "$1" "data/$1 is not in this bundle"
    return
  fi
  step "$1-ingest" - $loader ./graphscale graph ingest "data/$1/edges.tsv.gz" --out "work/$1" &&
    step "$1-train" - $loader ./graphscale train --graph "work/$1" --config "configs/$2" --out "work/$1-run" \
      --device "$device" &&
    step "$1-classify" "work/$1.f1" $loader ./graphscale eval classify "work/$1-run" --labels "data/$1/$4" \
      --ratios 0.5 --seeds "$3" --json &&
    { printf '"%s": ' "$1" && cat "work/$1.f1"; } >"logs/$1.f1" && grep -E '"(micro|macro)_f1"' "work/$1.f1" && write_result
}

describe_machine() {
  gpu=$(sed -n 's/.*device: //p' logs/probe.log)
  driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1)
  [ -n "$driver" ] || driver=$(head -n 1 /proc/driver/nvidia/version 2>/dev/null)
  printf '{"system": %s, "cpu": %s, "cores": %d, "memory_kib": %d, "device": %s, "driver": %s, "sanitizer": %s}' \
    "$(uname -srm | json_string)" "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1 | json_string)" \
    "$(nproc)" "$(awk '/^MemTotal/ { print $2 }' /proc/meminfo)" "$(printf '%s' "$gpu" | json_string)" \
    "$(printf '%s' "$driver" | json_string)" "$(printf '%s' "$sanitizer" | json_string)" >logs/machine.json
}

for step in $steps; do
  case $step in
    tests | memcheck | racecheck | initcheck | synccheck | bench | wordnet | blogcatalog) ;;
    *)
      echo "run.sh: no step is called $step; see the head of this file" >&2
      exit 2
      ;;
  esac
done

rm -rf logs work result.json
mkdir logs work || exit 1
if ! ./graphscale --version >logs/probe.log 2>&1; then  # this machine's glibc is older: take the one in lib/
  loader="lib/ld-linux-x86-64.so.2 --library-path lib"
fi
if ! $loader ./graphscale graph generate ring --nodes 100 --out work/ring >logs/probe.log 2>&1; then
  echo "run.sh: graphscale does not start here: $(tail -n 1 logs/probe.log)" >&2
  exit 1
fi
if ! $loader ./graphscale train --graph work/ring --out work/ring-run --device "$device" >logs/probe.log 2>&1; then
  echo "run.sh: no GPU that this bundle can use: $(tail -n 1 logs/probe.log | sed 's/.*error: //')" >&2
  exit 5
fi
sanitizer=$(PATH=$PATH:/usr/local/cuda/bin command -v compute-sanitizer)
describe_machine

for step in $steps; do
  case $step in
    tests) tests "" ;;
    bench) step bench logs/bench.jsonl $loader ./kernels_bench --device "$device" ;;
    wordnet) train wordnet wordnet.json 1 labels.tsv.gz ;;
    blogcatalog) train blogcatalog deepwalk.json 10 labels.tsv ;;
    *) sanitize "$step" ;;
  esac
done

echo "result.json: $count steps, $failed failed"
[ $failed -eq 0 ]
