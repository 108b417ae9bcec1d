#!/usr/bin/env bash
# Trains by OpenMPI, on this machine or on many: one rank a GPU, or a few ranks a machine without GPUs.
#   tools/launch/mpirun.sh GRAPH OUT CONFIG [OPTION…]       options of `graphscale train`, as --set training.epochs=5
#   HOSTS=hosts.txt tools/launch/mpirun.sh …                lines as "gpu01 slots=8": machines and the ranks on each
# Program, GRAPH and OUT lie at the same paths on all machines, which ssh reaches without a password. Further variables:
#   RANKS=4            of all machines                      [all slots of HOSTS; here as many as GPUs, or 1]
#   THREADS=8          CPU threads of a rank                [cores of this machine by the ranks on it]
#   INTERFACE=ib0      network that OpenMPI, and NCCL for its start, use   [what they find]
#   GRAPHSCALE=PATH    the program                          [build/release/graphscale]
#   NCCL_IB_HCA, NCCL_DEBUG and all other NCCL_… reach the ranks, too
# SIGTERM and SIGUSR1 to this script let the ranks finish their step and write (mpirun itself would give them 1 s).
set -euo pipefail
if (($# < 3)); then  # or --help
  sed -n '2,/^set/s/^# //p' "$0" >&2
  exit 2
fi
graph=$1 out=$2 config=$3
program=${GRAPHSCALE:-$(dirname "$0")/../../build/release/graphscale}

gpus=$(nvidia-smi -L 2>/dev/null | wc -l || true)
if [[ ${HOSTS:-} ]]; then
  here=$(sed -n 's/^[^#]*slots=\([0-9]*\).*/\1/p' "$HOSTS" | head -n 1)
  where=(--hostfile "$HOSTS" ${RANKS:+-n "$RANKS"})
else
  here=${RANKS:-$((gpus > 0 ? gpus : 1))}
  where=(--oversubscribe -n "$here")
fi
cores=$(nproc)
here=${here:-1}
threads=${THREADS:-$((cores > here ? cores / here : 1))}

mpi=(--bind-to none)  # a rank's threads need more than the one core that mpirun would bind it to
if [[ $EUID == 0 ]]; then mpi+=(--allow-run-as-root); fi
if [[ ${INTERFACE:-} ]]; then
  export NCCL_SOCKET_IFNAME=${NCCL_SOCKET_IFNAME:-$INTERFACE}
  mpi+=(--mca btl_tcp_if_include "$INTERFACE" --mca oob_tcp_if_include "$INTERFACE")
fi
for name in "${!NCCL_@}" LD_LIBRARY_PATH; do
  if [[ -v $name ]]; then mpi+=(-x "$name"); fi
done

mpirun "${where[@]}" "${mpi[@]}" "$program" train --graph "$graph" --out "$out" --config "$config" \
  --threads "$threads" "${@:4}" &
job=$!
trap 'kill -USR1 $job' TERM USR1
until wait $job; status=$?; ((status <= 128)) || ! kill -0 $job 2>/dev/null; do :; done  # a signal ends a wait, too
exit $status
