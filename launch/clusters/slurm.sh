#!/usr/bin/env bash
# A sweep as a Slurm job: sbatch slurm.sh [key=value ...]      (docs/clusters.md)
#
# The same command goes on where the last job was stopped. To stop one cleanly:
#   scancel --batch --signal=TERM JOB
#
#SBATCH --job-name=autotune
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --time=12:00:00
#SBATCH --signal=B:TERM@120
#SBATCH --output=autotune-%j.log
##SBATCH --partition=npu
##SBATCH --gres=npu:8
set -euo pipefail

# What to change, here or as NPUS=16 sbatch slurm.sh; paths lead to the same files on every node.
: "${AUTOTUNE:=$HOME/autotune}"          # the checkout
: "${VENV=$AUTOTUNE/.venv}"              # has autotune, and psycopg for PostgreSQL; empty: the PATH's
: "${MODEL:=qwen3_5_4b}"                 # a file in search_spaces/model/
: "${TRAINER_ROOT=$HOME/MindSpeed-MM}"   # empty for a model whose trainer has none
: "${STUDY_DIR:=$HOME/studies/$MODEL}"
: "${CANN_HOME=/usr/local/Ascend/ascend-toolkit}" # or /usr/local/Ascend/cann
: "${NPUS:=8}"                           # of one node
: "${NODES_PER_TRIAL:=1}"
: "${INTERFACE:=}"                       # network between the nodes, such as eth0; else Ray chooses
# Empty: SQLite in the study folder. Or such as postgresql://autotune@db.example.org/autotune;
# the password belongs into ~/.pgpass (mode 600), not here.
: "${AUTOTUNE_STORAGE=}"

: "${PORT:=6379}"
: "${JOIN_LIMIT_S:=300}" # the nodes must have joined by then
: "${CLOSING_S:=600}"    # kept back from the job's time: start, end, report

if [[ -n $VENV ]]; then
    # shellcheck source=/dev/null
    source "$VENV/bin/activate"
fi
export AUTOTUNE_STORAGE CANN_HOME INTERFACE NPUS PORT
export FOREGROUND=yes RAY_AUTH_MODE="${RAY_AUTH_MODE:-token}" RUN_DIR="/tmp/at-$SLURM_JOB_ID"
readonly START="$AUTOTUNE/launch/clusters/start_by_hand.sh"
# A step has its whole node, but its one task would be bound to one core.
readonly STEP=(
    srun --ntasks-per-node=1 --cpu-bind=none --mem=0 --kill-on-bad-exit=1
    --output="autotune-%j-ray-%N.log"
)
readonly COUNT_NODES='
import sys, ray
ray.init(address=sys.argv[1], log_to_driver=False, logging_level="ERROR")
print(sum(node["Alive"] for node in ray.nodes()))'

steps=() sweep='' stopped=''

die() {
    echo "slurm.sh: $*" >&2
    exit 1
}

# Only this shell gets Slurm's signal. The sweep closes its study and ends with 130.
# shellcheck disable=SC2329 # called by a trap
stop_sweep() {
    stopped=yes
    [[ -z $sweep ]] || kill -TERM "$sweep" 2>/dev/null || true
}

# shellcheck disable=SC2329
end_ray() {
    ((${#steps[@]} == 0)) || kill -TERM "${steps[@]}" 2>/dev/null || true
    wait
}

trap stop_sweep TERM
trap end_ray EXIT

keep_waiting() {
    local step
    [[ -z $stopped ]] || exit 130
    for step in "${steps[@]}"; do
        kill -0 "$step" 2>/dev/null || die "Ray ended on a node; see autotune-$SLURM_JOB_ID-ray-*.log"
    done
    ((SECONDS < JOIN_LIMIT_S)) || die "$1 within JOIN_LIMIT_S=$JOIN_LIMIT_S s"
    sleep 1
}

# Seconds since the epoch; nothing where the job has no end. Older Slurm sets no variable.
job_end() {
    local end="${SLURM_JOB_END_TIME:-}"
    if [[ -z $end ]]; then
        end=$(scontrol show job "$SLURM_JOB_ID" | sed -n 's/.*EndTime=\([^ ]*\).*/\1/p')
        end=$(date -d "$end" +%s 2>/dev/null || true)
    fi
    echo "$end"
}

# Ray: on the first node, where this script runs too, then on the others.
nodes=$SLURM_JOB_NUM_NODES
mapfile -t hosts < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
first=${hosts[0]}
"${STEP[@]}" --nodes=1 --ntasks=1 --nodelist="$first" "$START" head </dev/null &
steps+=($!)
until [[ -s $RUN_DIR/ray_current_cluster ]]; do
    keep_waiting "no head"
done
head=$(<"$RUN_DIR/ray_current_cluster")
if ((nodes > 1)); then
    "${STEP[@]}" --nodes=$((nodes - 1)) --ntasks=$((nodes - 1)) --exclude="$first" \
        "$START" worker "$head" </dev/null &
    steps+=($!)
fi
here=0
while ((here < nodes)); do
    keep_waiting "$here of $nodes nodes joined"
    here=$(python -c "$COUNT_NODES" "$head" | tail -n 1) || die "Ray at $head does not answer"
done

arguments=(
    "model=$MODEL" "study.dir=$STUDY_DIR"
    cluster=npu "cluster.address=$head" "cluster.nodes_per_trial=$NODES_PER_TRIAL"
    "cluster.devices_per_trial=$((NPUS * NODES_PER_TRIAL))"
    "cluster.max_concurrent_trials=$((nodes / NODES_PER_TRIAL))"
)
[[ -z $TRAINER_ROOT ]] || arguments+=("trainer.root=$TRAINER_ROOT")
[[ -z $CANN_HOME ]] || arguments+=("trainer.setup=[$CANN_HOME/set_env.sh]")
# shellcheck disable=SC2016 # for autotune to read, so that no URL is on a command line
[[ -z $AUTOTUNE_STORAGE ]] || arguments+=('study.storage=${oc.env:AUTOTUNE_STORAGE}')
end=$(job_end)
if [[ -n $end ]]; then
    left_s=$((end - $(date +%s) - CLOSING_S))
    ((left_s > 0)) || die "the job ends within CLOSING_S=$CLOSING_S s; give it more --time"
    arguments+=("search.max_hours=$(awk -v s="$left_s" 'BEGIN { printf "%.2f", s / 3600 }')")
fi

[[ -z $stopped ]] || exit 130
python -m autotune "${arguments[@]}" "$@" &
sweep=$!
code=0
wait "$sweep" || code=$?
# A signal ends `wait`, while the sweep is still closing its study.
while kill -0 "$sweep" 2>/dev/null; do
    code=0
    wait "$sweep" || code=$?
done
exit "$code"
