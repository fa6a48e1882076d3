"""Launch scripts of the kinds that people write, by what is particular about them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Script:
    text: str
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    name: str = "train.sh"


SCRIPTS = {
    "options in variables, split where they are used": Script(
        r"""#!/bin/bash
# Comments, also in 中文
export TASK_QUEUE_ENABLE=2
export HCCL_CONNECT_TIMEOUT=1200 # seconds
DEVICES=8
NODES=2
WORLD=$(($DEVICES*$NODES))
TP=2 PP=2
DP=$(($WORLD/$TP/$PP))
GBS=$((4*$DP))
LAYOUT="
    --nproc_per_node $DEVICES \
    --nnodes $NODES
"
MODEL="
    --lr 1.0e-5 \
    --global-batch-size ${GBS} \
    --bf16
"
torchrun $LAYOUT pretrain.py \
    $MODEL \
    --save out \
    2>&1 | tee train.log
chmod 440 train.log
find $SAVE_PATH -type d -exec chmod 750 {} \;
TIME=`grep "time" train.log | awk -F ':' '{print$5}'`
"""
    ),
    "arrays": Script(
        r"""
ARGS=(
    --lr 1e-4   # the rate
    --name "two words"
    --empty ""
)
ARGS+=(--more "${ARGS[1]}")
[[ ${#ARGS[@]} -gt 4 ]] && ARGS+=(--flag)
export COUNT=${#ARGS[@]} FIRST=${ARGS[0]}
torchrun --nproc_per_node=2 train.py "${ARGS[@]}" "${ARGS[@]:0:2}" "${ARGS[*]}"
"""
    ),
    "options of the script by while and case": Script(
        r"""
LR=1e-4
EXTRA=()
while [[ $# -gt 0 ]]; do
    case "$1" in
        --lr) LR="$2"; shift 2 ;;
        --size=*) SIZE="${1#*=}"; shift ;;
        -v|--verbose) VERBOSE=1; shift ;;
        --) shift; EXTRA=("$@"); break ;;
        *) echo "unknown $1"; exit 1 ;;
    esac
done
torchrun train.py --lr "$LR" --size ${SIZE:-small} ${VERBOSE:+--verbose} "${EXTRA[@]}"
""",
        arguments=("--lr", "2e-5", "-v", "--size=7 b", "--", "--a", "b c"),
    ),
    "options of the script by for and prefixes": Script(
        r"""
for para in $*
do
    if [[ $para == --batch* ]]; then
        batch=$(echo ${para#*=})
    elif [[ $para == --model* ]]; then
        model=`echo ${para#*=}`
    fi
done
torchrun train.py --batch $batch --model "$model"
""",
        arguments=("--batch=16", "--model=a/b"),
    ),
    "getopts": Script(
        r"""
while getopts "n:p:vx" option; do
  case $option in
    n) nodes=$OPTARG;;
    p) port=${OPTARG};;
    v) verbose=yes;;
    x) extra=yes;;
    ?) exit 2;;
  esac
done
shift $((OPTIND-1))
torchrun --nnodes $nodes train.py --port "$port" --v "$verbose$extra" "$@"
""",
        arguments=("-vx", "-n", "4", "-p29500", "rest", "of it"),
    ),
    "defaults from the environment": Script(
        r"""
set -euo pipefail
NPUS=${NPUS:-8}
: ${PORT:=6000}
: "${ADDR:=localhost}"
EMPTY=
torchrun --nproc_per_node ${NPUS} --master_port $PORT --master_addr "$ADDR" train.py \
  --a "${EMPTY:-filled}" --b "${EMPTY-kept}" --c ${UNSET-'two words'} --d "${UNSET:+never}"
""",
        environment={"NPUS": "4"},
    ),
    "the folder of the script": Script(
        r"""
HERE=$(cd "$(dirname "$0")" && pwd)
ROOT=$(dirname $(dirname "$HERE"))
NAME=$(basename "${BASH_SOURCE[0]}" .sh)
SAME=$(cd `dirname $0`; cd ..; pwd)
LINK=$(dirname "$(readlink -f "$0")")
cd "$HERE/.."
torchrun "$PWD/train.py" --root "$ROOT" --name $NAME --same $SAME --link $LINK --pwd "$(pwd)"
""",
        name="examples/model/run_it.sh",
    ),
    "functions": Script(
        r"""
name=outer
options() {
    local name=$1 count=$#
    echo "--name=$name-$count"
    result="$name"
}
launch() {
    if [ -z "$2" ]; then return 1; fi
    torchrun train.py "$@"
}
launch only-one || launch $(options a b) "$name" "$result"
options c > /dev/null
launch "$result" "$name"
"""
    ),
    "tests": Script(
        r"""
A=10 B="x y" C=
[ $A -gt 9 ] && R="$R 1"
[ "$B" = "x y" -a -n "$A" ] && R="$R 2"
[ -z "$C" ] && R="$R 3"
[ ! -z "$C" ] || R="$R 4"
[[ $B == x* && ! -n $C ]] && R="$R 5"
[[ $B == "x*" ]] || R="$R 6"
[[ $A =~ ^[0-9]+$ ]] && R="$R 7"
[[ "v12-3" =~ v([0-9]+)-(.) ]] && R="$R ${BASH_REMATCH[1]}/${BASH_REMATCH[2]}"
test "$A" -le 9 -o "$A" -ge 10 && R="$R 8"
(( A > 5 && A % 2 == 0 )) && R="$R 9"
if [ -f none ] || [ -d none ]; then R="$R no"; elif [ -e train.sh ]; then R="$R there"; fi
[[ ( $A -eq 10 || $B == z ) && abc < abd ]] && R="$R 10"
! false && R="$R 11"
torchrun train.py $R
"""
    ),
    "quotes": Script(
        r"""
A='single $A "quoted"' B="double \"quoted\" \$A \\ \n" C=$'tab\there'
D=un\ quoted\$ E='it'\''s' F="a"'b'c
torchrun train.py "$A" "$B" "$C" "$D" "$E" $F "" '' "$G" $G "é 中" \
    --json '{"a": [1, 2], "b": "x"}' --list "[1, 2]" --joined="a b"c --glob "*.py" '?'
"""
    ),
    "expansions": Script(
        r"""
P=/data/set.v1/file.tar.gz L="a,b,c"
torchrun train.py "${P##*/}" "${P#*/}" "${P%.*}" "${P%%.*}" "${P/data/x}" "${P//./_}" \
  "${P/#\/data/here}" "${P/%gz/xz}" ${#P} "${P:1:4}" "${P: -2}" "${L^^}" "${L//,/ }" \
  ${L//,/ } "${P/a*e/}" "${P:0:-3}" $(( ${#L} * 2 )) {a,b}{1..3} x{y}
"""
    ),
    "arithmetic": Script(
        r"""
N=8 M=3
((N++)); ((M += 2)); let "K = N * M"
I=0; while ((I < 3)); do I=$((I + 1)); done
for ((j = 0; j < 2; j++)); do S="$S$j"; done
torchrun train.py $((N / M)) $((-N % M)) $((N > M ? 1 : 2)) $((2 ** 10)) $(((N + M) * 2)) $K \
  $((0x10 + 010 + 2#101)) $((N & 1 | 4)) $((!N)) $[N+1] $S $I $((N == 9 && M != 3)) `expr 2 \* 3`
"""
    ),
    "outputs that follow from the script": Script(
        r"""
DEVICES=0,1,2,5
COUNT=$(echo $DEVICES | tr ',' '\n' | wc -l)
ALSO=$(echo "$DEVICES" | awk -F',' '{print NF}')
FIRST=$(echo $DEVICES | cut -d, -f1)
LAST=$(seq 1 3 | tail -n 1)
IFS=',' read -r -a PARTS <<< "$DEVICES"
IFS=, read one rest <<< "$DEVICES"
printf -v PADDED "%03d-%s" 7 x
TEXT=$(printf "%s:%d\n" a 1 b 2)
export ASCEND_RT_VISIBLE_DEVICES=$DEVICES
torchrun --nproc_per_node $COUNT train.py $ALSO $FIRST $LAST "${#PARTS[@]}" "${PARTS[3]}" \
    "$one" "$rest" $PADDED "$TEXT"
"""
    ),
    "here-documents": Script(
        r"""
N=4
cat > config.json <<EOF
{"n": $N, "price": "\$5", "next": $((N + 1)), "quoted": "a \"b\""}
EOF
cat <<'EOF' > raw.txt
$N `date`
EOF
TEXT=$(cat <<-EOF
	indented $N
	EOF
)
torchrun train.py --config config.json --n $N "$TEXT" "$(cat config.json)" "$(< raw.txt)"
"""
    ),
    "environment of one command": Script(
        r"""
export A=1 B="two words"
C=3
export C
D=4
export -n B
unset A
A=5
E=6 F=$C torchrun train.py "$E"
env G=7 torchrun other.py
F=8 && export F && torchrun third.py
"""
    ),
    "nohup, background, log": Script(
        r"""
export X=1
nohup torchrun --nproc_per_node 2 train.py --a > train_$X.log 2>&1 &
echo $! > pid
wait
"""
    ),
    "eval, bash -c and exec": Script(
        r"""
export ARGS="--a 'b c' --d"
CMD="torchrun train.py $ARGS"
echo $CMD
eval $CMD
bash -c "torchrun second.py $ARGS"
bash -c 'torchrun third.py "$ARGS" $1' name arg
CMD=(torchrun fourth.py "x y"); "${CMD[@]}"
set -- five six
exec torchrun fifth.py "$@"
torchrun never.py
"""
    ),
    "python -m": Script(
        r"""
PYTHON=python3
$PYTHON -u -m torch.distributed.run --standalone --nproc-per-node=2 -m pkg.train --lr 1
python -m torch.distributed.launch --use_env --nproc_per_node 2 train.py --x
"""
    ),
    "retries": Script(
        r"""
for attempt in 1 2 3; do
    torchrun train.py && break
    sleep 5
done
until torchrun second.py; do :; done
while true; do if torchrun third.py; then break; fi; done
"""
    ),
    "loops in loops": Script(
        r"""
for a in 1 2 3; do
    for b in x y z; do
        [ $b = y ] && [ $a = 2 ] && break 2
        [ $b = y ] && continue 2
        torchrun train.py $a $b
    done
    torchrun never.py
done
"""
    ),
    "guards": Script(
        r"""
set -e
if ! [ "$1" ]; then echo "Usage: $0 model"; exit 1; fi
case $1 in
    small) LAYERS=2 ;;&
    s*|m*) SIZE=ok ;;
    large) LAYERS=40 ;;
esac
false || true
if false; then exit 3; fi
torchrun train.py --layers $LAYERS --size $SIZE --status $?
""",
        arguments=("small",),
    ),
    "set -e ends it": Script("set -e\ntorchrun first.py\nfalse\ntorchrun second.py\n"),
    "set -u ends it": Script("set -u\ntorchrun first.py\ntorchrun second.py $NOT_SET\n"),
    "groups and subshells": Script(
        r"""
A=1
( A=2; cd /; export B=$A; torchrun train.py $A "$PWD" )
{ C=3; torchrun second.py $A $C; } 2>&1 | tee log
torchrun third.py "$A" "$B" "$C"
"""
    ),
    "a comment between continued lines ends the command": Script(
        "torchrun train.py \\\n  --a 1 \\\n# --b 2 \\\n  --c 3\n"
    ),
    "a blank after the backslash ends the command": Script(
        "torchrun train.py --a 1 \\ \n  --b 2\n"
    ),
    "words across lines": Script('torchrun train.py --a\\\nb "c\\\nd" "e\nf" \\\n\n'),
    "several assignments on a line": Script(
        'MBS=1 GBS="$((8*2))"\n[ $MBS -eq 1 ] && torchrun train.py $MBS $GBS\n'
    ),
    "last words of a here-document's line": Script(
        "cat <<EOF > f; X=after\ninside\nEOF\ntorchrun train.py $X $(cat f)\n"
    ),
    "no end of line at the end": Script("torchrun train.py --a 1"),
    "home": Script(
        'D=~/data\nE="~/x"\nexport Q=/a:~/b\ntorchrun train.py $D $E ~ ~/c --d=~/e ${F:-~/f}\n'
    ),
    "unset and empty": Script(
        'A=""\nunset B\ntorchrun train.py $A "$A" $B "$B" "${C[@]}" "$@" ${#C[@]} x$A"y"$B\n'
    ),
    "associative arrays": Script(
        "declare -A S=([tiny]=1 [base]=12)\nS[large]=24\nfor m in tiny large; do"
        ' N="$N ${S[$m]}"; done\ntorchrun train.py $N "${#S[@]}" "${S[none]:-0}"\n'
    ),
    "reading lines": Script(
        'while IFS== read -r key value; do ARGS="$ARGS --$key $value"; done <<EOF\n'
        "lr=1\nwd=2 x\nEOF\ntorchrun train.py $ARGS\n"
    ),
    "indirect names": Script(
        'MODEL_A=7\nWHICH=MODEL_A\nC=(a b)\ntorchrun train.py ${!WHICH} "${!C[@]}" ${C[-1]}\n'
    ),
    "the launcher's own flags": Script(
        "torchrun --standalone --nproc-per-node 2 --no_python prog --x 1\n"
        "torchrun --nnodes 1:2 -r 3 z.py --a -- -b\n"
    ),
}
