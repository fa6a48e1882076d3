"""Words made at random, of all kinds of quotes and expansions, come to what bash makes of them."""

from __future__ import annotations

import subprocess

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from launch.trainers.shell import read_script

# A function in the place of the launcher; nothing else is run but shell text made here.
_RECORDER = "torchrun() { printf '%s\\0' \"$@\" END; }\n"
_START = """A=ab.c; B='x y'; C=a/b/c.d.e; E=; N=8; M=3; ARR=(p 'q r' ''); REF=A
declare -A H=([k1]=v1)
f() { echo "$2-$1"; }
"""
_OPERATORS = ["+", "-", "*", "==", "<", ">=", "&&", "||", "|", "<<", "^"]
_ENVIRONMENT = {"HOME": "/home/user", "LANG": "C.UTF-8"}

names = st.sampled_from(["A", "B", "C", "D", "E", "1", "2"])
variables = st.sampled_from(["A", "B", "C", "D", "E"])
patterns = st.sampled_from(
    [
        "*",
        "?",
        "a*",
        "*.",
        ".*",
        "[a-c]",
        "*/",
        "/*",
        "x",
        "$B",
        '"$B"',
        "[!a]",
        r"\*",
        "[[:digit:]]",
    ]
)
texts = st.sampled_from(
    [
        "x",
        "8",
        "a b",
        "  lead",
        "trail  ",
        "x.y",
        "p/q.tar.gz",
        "-3",
        "a:b",
        "#no",
        "--o v",
        "ü",
        "[1]",
    ]
)
numbers = st.recursive(
    st.sampled_from(["1", "2", "8", "N", "$M", "${N}", "010", "0x1f"]),
    lambda inner: st.one_of(
        st.builds("{} {} {}".format, inner, st.sampled_from(_OPERATORS), inner),
        st.builds(
            "{} {} {}".format, inner, st.sampled_from("/%"), st.sampled_from(["3", "-2", "M"])
        ),
        st.builds("({})".format, inner),
        st.builds("{} ? {} : {}".format, inner, inner, inner),
        st.builds("! {}".format, inner),
        st.builds("- {}".format, inner),
    ),
    max_leaves=4,
)
simple_expansions = st.one_of(
    st.builds("${}".format, names),
    st.builds("${{{}}}".format, names),
    st.builds("${{#{}}}".format, variables),
    st.builds("${{{}{}{}}}".format, variables, st.sampled_from(["#", "##", "%", "%%"]), patterns),
    st.builds(
        "${{{}{}{}/{}}}".format,
        variables,
        st.sampled_from(["/", "//", "/#", "/%"]),
        patterns,
        st.sampled_from(["", "z", '"q r"', "$A"]),
    ),
    st.builds(
        "${{{}{}}}".format,
        variables,
        st.sampled_from([":0", ":1", ":1:1", ": -1", "^", "^^", ",,", ":2:5"]),
    ),
    st.builds("$(({}))".format, numbers),
    st.sampled_from(
        [
            "$@", "$*", "$#", "${@:2}", "${ARR[@]}", "${ARR[*]}", "${ARR[1]}", "${#ARR[@]}",
            "${ARR[@]:1}", "${ARR[@]/q/z}", "${!ARR[@]}", "${!REF}", "${H[k1]}", "${ARR[-2]}",
            '$(f "$A" y)', "$(echo $B)", "`echo \"$A\"`", '$(basename "$C")', "$?",
        ]
    ),
)  # fmt: skip
quoted = st.one_of(
    st.builds("'{}'".format, texts),
    st.builds('"{}"'.format, texts),
    st.lists(simple_expansions | st.sampled_from(["x", " ", '\\"', "\\\\", "\\$"]), max_size=3).map(
        lambda pieces: '"' + "".join(pieces) + '"'
    ),
)
unquoted = st.sampled_from(["x", "8", "a=b", "a#b", "{a,b}", "{1..3}", "~", "%", "a\\ b", "\\$A"])
plain_words = st.lists(quoted | simple_expansions | unquoted, min_size=1, max_size=3).map("".join)
defaults = st.builds(
    "${{{}{}{}}}".format,
    names,
    st.sampled_from([":-", "-", ":+", "+"]),
    quoted | st.sampled_from(["x", "x y", "$A", "${B}", "~/z"]),
)
words = plain_words | defaults | st.builds('"{}"'.format, simple_expansions)


def of_bash(script: str) -> list[list[str]]:
    done = subprocess.run(
        ["/bin/bash", "-c", _RECORDER + script, "train.sh", "one", "two words", ""],
        env={**_ENVIRONMENT, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        check=False,
        timeout=60,
    )
    launches: list[list[str]] = []
    current: list[str] = []
    for word in done.stdout.decode().split("\0")[:-1]:
        if word == "END":
            launches.append(current)
            current = []
        else:
            current.append(word)
    return launches


def read(script: str) -> list[list[str]]:
    reading = read_script(script, "train.sh", ("one", "two words", ""), _ENVIRONMENT)
    return [[launch.program, *launch.arguments] for launch in reading.launches]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(words, min_size=5, max_size=25))
def test_words(made: list[str]) -> None:
    # Which files there are is not the question here.
    script = _START + "set -f\n" + "".join(f"torchrun train.py {word}\n" for word in made)
    assert read(script) == of_bash(script)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(variables, plain_words | defaults), min_size=5, max_size=15))
def test_assignments(made: list[tuple[str, str]]) -> None:
    lines = "".join(f"{name}={word}\n" for name, word in made)
    script = _START + lines + 'torchrun train.py "$A" "$B" "$C" "$D" "$E"\n'
    assert read(script) == of_bash(script)
