#!/usr/bin/env bash
# Trains as torchrun starts its ranks, without MPI and without Python. Call it once on each machine:
#   tools/launch/torchrun.sh GRAPH OUT CONFIG [OPTION…]     options of `graphscale train`, as --set training.epochs=5
#   MACHINES=2 MACHINE=0 MASTER_ADDR=gpu01 tools/launch/torchrun.sh …       and with MACHINE=1 on the second one
# GRAPH lies at the same path on all machines; rank 0, on machine 0, writes OUT. Further variables:
#   RANKS=4            on each machine                      [its GPUs, or 1]
#   THREADS=8          CPU threads of a rank                [cores by the ranks here]
#   INTERFACE=ib0      network that NCCL starts on          [what it finds]
#   MASTER_PORT=29400  where rank 0 listens
#   GRAPHSCALE=PATH    the program                          [build/release/graphscale]
#   NCCL_IB_HCA, NCCL_DEBUG and all other NCCL_… reach the ranks, too
# SIGTERM and SIGUSR1 to this script let the ranks finish their step and write. The first rank that fails ends the others.
# torchrun itself: torchrun --no-python --nnodes=2 --nproc-per-node=8 … graphscale train --graph … --out … --config …
set -euo pipefail
if (($# < 3)); then  # or --help
  sed -n '2,/^set/s/^# //p' "$0" >&2
  exit 2
fi
graph=$1 out=$2 config=$3
program=${GRAPHSCALE:-$(dirname "$0")/../../build/release/graphscale}
readonly farewell_s=5  # for the others to say what they know when one rank has failed

gpus=$(nvidia-smi -L 2>/dev/null | wc -l || true)
ranks=${RANKS:-$((gpus > 0 ? gpus : 1))}
cores=$(nproc)
threads=${THREADS:-$((cores > ranks ? cores / ranks : 1))}
first=$((${MACHINE:-0} * ranks))
export WORLD_SIZE=$((${MACHINES:-1} * ranks)) LOCAL_WORLD_SIZE=$ranks
export MASTER_ADDR=${MASTER_ADDR:-127.0.0.1} MASTER_PORT=${MASTER_PORT:-29400}
if [[ ${INTERFACE:-} ]]; then export NCCL_SOCKET_IFNAME=${NCCL_SOCKET_IFNAME:-$INTERFACE}; fi

processes=()
for ((local_rank = 0; local_rank < ranks; ++local_rank)); do
  RANK=$((first + local_rank)) LOCAL_RANK=$local_rank "$program" train --graph "$graph" --out "$out" \
    --config "$config" --threads "$threads" "${@:4}" &
  processes+=($!)
done
trap 'kill -TERM "${processes[@]}" 2>/dev/null || true' TERM USR1
trap 'kill -KILL "${processes[@]}" 2>/dev/null || true' EXIT  # stopped ones, too

status=0 ends_s=  # ends_s: when to give up on those left
while ((${#processes[@]} > 0)); do
  sleep 0.2
  for i in "${!processes[@]}"; do
    kill -0 "${processes[i]}" 2>/dev/null && continue
    one=0
    wait "${processes[i]}" || one=$?
    unset "processes[i]"
    if ((one != 0 && status == 0)); then status=$one ends_s=$((SECONDS + farewell_s)); fi
  done
  if [[ $ends_s ]] && ((SECONDS >= ends_s)); then break; fi
done
exit $status
