#!/usr/bin/env bash
# Starts Ray on the host on which it is called, as autotune needs it (docs/clusters.md).
#
#   start_by_hand.sh head               on one host; says what to type on the others
#   start_by_hand.sh worker HEAD:PORT   on each other host
#   start_by_hand.sh stop               ends what this script started on this host, nothing else
#
# Further words go to `ray start`. `ray` must be on the PATH, of the same environment on each host.
# What to change, as NPUS=16 start_by_hand.sh head:
#
#   NPUS        NPUs of this host; without it those that it has. 0: only its CPUs
#   CPUS        cores of this host; without it all
#   INTERFACE   network in which the hosts reach each other, such as eth0; without it Ray chooses
#   NODE_IP     address of this host there, where the interface has several
#   PORT        of the head, 6379
#   CANN_HOME   folder of set_env.sh; without it one of the usual places, where there is one
#   RUN_DIR     logs, sockets and process ids; a local folder with a short path
#   FOREGROUND  any value: stay, and end Ray when told to end
set -euo pipefail

: "${PORT:=6379}"
: "${RUN_DIR:=/tmp/at-ray-$(id -u)}"
: "${START_LIMIT_S:=120}"
readonly STOP_LIMIT_S=30
readonly LONGEST_RUN_DIR=25 # of a socket's 107 characters Ray needs 82
readonly OBJECT_STORE_BYTES=268435456 # autotune keeps nothing there; Ray would take 30 % of memory

die() {
    echo "start_by_hand.sh: $*" >&2
    exit 1
}

usage() {
    sed -n '4,6s/^# *//p' "$0" >&2
    exit 2
}

source_cann() {
    [[ -z ${ASCEND_TOOLKIT_HOME:-} ]] || return 0 # that is done
    local home
    for home in ${CANN_HOME:+"$CANN_HOME"} /usr/local/Ascend/cann /usr/local/Ascend/ascend-toolkit; do
        if [[ -f $home/set_env.sh ]]; then
            set +u # it reads variables that may be unset
            # shellcheck source=/dev/null
            source "$home/set_env.sh"
            set -u
            return
        fi
        [[ $home != "${CANN_HOME:-}" ]] || die "CANN_HOME=$home has no set_env.sh"
    done
}

count_npus() {
    local ids files
    if [[ -n ${ASCEND_RT_VISIBLE_DEVICES:-} ]]; then
        IFS=, read -ra ids <<<"$ASCEND_RT_VISIBLE_DEVICES"
        echo "${#ids[@]}"
        return
    fi
    files=$(compgen -G '/dev/davinci[0-9]*' || true)
    [[ -n $files ]] || die "no NPU is here; give NPUS=0 for a host that only lends its CPUs"
    wc -l <<<"$files"
}

address_of() {
    local shown
    shown=$(ip -4 -o address show dev "$1" 2>/dev/null || true)
    awk 'NR == 1 { sub("/.*", "", $4); print $4 }' <<<"$shown"
}

# Ray's servers run what they are told by anyone who reaches them, so they ask for a token.
require_token() {
    export RAY_AUTH_MODE="${RAY_AUTH_MODE:-token}"
    local path="${RAY_AUTH_TOKEN_PATH:-$HOME/.ray/auth_token}"
    if [[ $RAY_AUTH_MODE != token || -n ${RAY_AUTH_TOKEN:-} || -s $path ]]; then
        return
    fi
    [[ $1 == head && -z ${RAY_AUTH_TOKEN_PATH:-} ]] ||
        die "no token in $path; copy it from the head's host, readable by you alone"
    (umask 077 && ray get-auth-token --generate >/dev/null 2>&1) || die "ray made no token in $path"
}

make_run_dir() {
    ((${#RUN_DIR} <= LONGEST_RUN_DIR)) ||
        die "RUN_DIR=$RUN_DIR is longer than $LONGEST_RUN_DIR characters"
    (umask 077 && mkdir -p "$RUN_DIR")
    [[ -O $RUN_DIR ]] || die "RUN_DIR=$RUN_DIR belongs to somebody else"
}

# Whether a process is the `ray start` that was noted down, and not one that got its number since.
is_ours() {
    [[ $(tr '\0' ' ' 2>/dev/null <"/proc/$1/cmdline") == *"--temp-dir=$RUN_DIR "* ]]
}

start() {
    local role=$1 address
    shift
    source_cann
    command -v ray >/dev/null || die "no ray on the PATH; activate the environment with autotune"
    make_run_dir
    local pid_file="$RUN_DIR/$role.pid" log="$RUN_DIR/$role.log" joined="$RUN_DIR/ray_current_cluster"
    if [[ -s $pid_file ]] && is_ours "$(<"$pid_file")"; then
        die "a $role runs here already; end it with: start_by_hand.sh stop"
    fi
    NPUS="${NPUS:-$(count_npus)}"
    require_token "$role"

    if [[ -n ${INTERFACE:-} ]]; then
        address=$(address_of "$INTERFACE")
        [[ -n $address ]] || die "INTERFACE=$INTERFACE has no IPv4 address; see: ip -4 -o address"
        NODE_IP="${NODE_IP:-$address}"
        # Ranks take these from the node on which they run (launch/device_environment.py).
        export HCCL_IF_IP="${HCCL_IF_IP:-$address}"
        export GLOO_SOCKET_IFNAME="${GLOO_SOCKET_IFNAME:-$INTERFACE}"
    fi
    export RAY_worker_niceness=0 # else ranks would run at nice 15
    export RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S=0 # else every end takes 30 s
    export RAY_USAGE_STATS_ENABLED=0
    # Without --block one could only end Ray with `ray stop`, which ends each Ray on the host.
    # A count of NPUs without CANN is taken as it is; Ray logs one traceback about acl.
    local command=(
        ray start --block "--temp-dir=$RUN_DIR" "--num-cpus=${CPUS:-$(nproc)}"
        "--resources={\"NPU\": $NPUS}" "--object-store-memory=$OBJECT_STORE_BYTES"
        ${NODE_IP:+"--node-ip-address=$NODE_IP"}
    )
    if [[ $role == head ]]; then
        command+=(--head "--port=$PORT" --include-dashboard=false)
    else
        command+=("--address=$HEAD")
    fi
    rm -f "$joined"
    if [[ -n ${FOREGROUND:-} ]]; then
        exec "${command[@]}" "$@"
    fi
    setsid "${command[@]}" "$@" >"$log" 2>&1 </dev/null &
    echo $! >"$pid_file"
    await_start "$!" "$joined" || {
        end "$role" >/dev/null
        die "Ray did not start within $START_LIMIT_S s; see $log"
    }
    HEAD=$(<"$joined")
    echo "Ray is up, $role of $HEAD, with $NPUS NPU"
    [[ $role == worker ]] || cat <<TEXT
on the others:  start_by_hand.sh worker $HEAD
then, here:     RAY_AUTH_MODE=$RAY_AUTH_MODE python -m autotune model=... cluster=npu cluster.address=$HEAD
TEXT
}

# Ray writes the address of its cluster down when a node is up.
await_start() {
    local pid=$1 joined=$2 until=$((SECONDS + START_LIMIT_S))
    while [[ ! -s $joined ]]; do
        kill -0 "$pid" 2>/dev/null || return 1
        ((SECONDS < until)) || return 1
        sleep 0.2
    done
}

# Ends what was started in a role; it ends its servers, and they their workers.
end() {
    local role=$1 pid_file="$RUN_DIR/$1.pid" pid until=$((SECONDS + STOP_LIMIT_S))
    [[ -s $pid_file ]] || return 0
    pid=$(<"$pid_file")
    if is_ours "$pid"; then
        kill -TERM "$pid"
        while is_ours "$pid"; do
            ((SECONDS < until)) || kill -KILL "$pid"
            sleep 0.2
        done
        echo "ended the $role, process $pid"
    fi
    rm -f "$pid_file"
}

case "${1:-}" in
head)
    shift
    start head "$@"
    ;;
worker)
    [[ ${2:-} == *:* ]] || usage
    HEAD=$2
    shift 2
    start worker "$@"
    ;;
stop)
    end worker # first, else it would report the death of its head
    end head
    ;;
*) usage ;;
esac
