"""What people start from on a cluster: Ray's launcher file, Slurm, Kubernetes, by hand.

Nothing here needs a cluster: files are read by who will read them, scripts run with stand-ins, and
two tests start a real Ray of two nodes on this host.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import psutil
import pytest
import yaml
from ray.autoscaler._private.util import prepare_config, validate_config
from ray.scripts.scripts import start as ray_start

from autotune.config.compose import compose_config
from launch.port_lease import PortLease
from tests.launch.clusters_programs import CLUSTERS, Desk, is_running, short_folder

CLUSTERS_SWEEP = Path(__file__).parent / "clusters_sweep.py"
SCRIPTS = ("slurm.sh", "start_by_hand.sh")
JOB = {"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "2", "SLURM_JOB_NODELIST": "node-[a-b]"}


def parse_ray_start(command: str) -> dict[str, Any]:
    """What Ray's own command line makes of a `ray start` command."""
    words = shlex.split(command)
    first = next(at for at in range(len(words)) if words[at : at + 2] == ["ray", "start"])
    with click.Context(ray_start):
        values = ray_start.make_context("start", words[first + 2 :]).params
    return {**values, "resources": json.loads(values["resources"])}


def composed(words: list[str]) -> Any:
    """The configuration that autotune makes of a command `python -m autotune ...`."""
    assert words[:3] == ["python", "-m", "autotune"]
    return compose_config(words[3:]).config


def wait_for(happened: Callable[[], bool], limit_s: float = 20.0) -> None:
    until = time.monotonic() + limit_s
    while not happened():
        assert time.monotonic() < until, f"has not happened within {limit_s} s"
        time.sleep(0.05)


# All of them


@pytest.mark.parametrize("script", SCRIPTS)
def test_bash_reads_the_script(script: str) -> None:
    subprocess.run(["/bin/bash", "-n", str(CLUSTERS / script)], check=True)
    assert os.access(CLUSTERS / script, os.X_OK)


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
@pytest.mark.parametrize("script", SCRIPTS)
def test_shellcheck_finds_nothing(script: str) -> None:
    done = subprocess.run(
        ["shellcheck", "-x", script], cwd=CLUSTERS, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_no_file_has_a_password_in_a_url() -> None:
    for path in CLUSTERS.iterdir():
        assert not re.search(r"://[^/\s'\"]*:[^/\s'\"]*@", path.read_text()), path.name


# Ray's launcher


@pytest.fixture(scope="module")
def launcher_file() -> dict[str, Any]:
    return yaml.safe_load((CLUSTERS / "ray_cluster.yaml").read_text())


def test_ray_up_takes_the_file(launcher_file: dict[str, Any]) -> None:
    prepared = prepare_config(launcher_file)
    validate_config(prepared)  # against Ray's own ray-schema.json
    (kind,) = prepared["available_node_types"].values()
    assert kind["min_workers"] == len(launcher_file["provider"]["worker_ips"])


@pytest.mark.parametrize("role", ["head", "worker"])
def test_ray_up_starts_nodes_with_npus_in_the_cann_environment(
    launcher_file: dict[str, Any], role: str
) -> None:
    command = launcher_file[f"{role}_start_ray_commands"][-1]
    options = parse_ray_start(command)
    assert options["resources"] == {"NPU": 8}
    assert options["num_cpus"] > 8
    before = command[: command.index("ray start")]
    assert "source /usr/local/Ascend/ascend-toolkit/set_env.sh &&" in before
    assert {"RAY_AUTH_MODE=token", "RAY_worker_niceness=0"} <= set(before.split())


def test_ray_up_opens_no_dashboard(launcher_file: dict[str, Any]) -> None:
    options = parse_ray_start(launcher_file["head_start_ray_commands"][-1])
    assert options["include_dashboard"] is False
    assert options["dashboard_host"] == "127.0.0.1"


# KubeRay. The fields that are used, of
# https://github.com/ray-project/kuberay/blob/v1.6.0/ray-operator/config/crd/bases/ray.io_rayjobs.yaml
# (the same in v1.7.0; v1.5.0 has no authOptions), and of pods, as Kubernetes' API has them.

RAY_JOB = {
    "entrypoint",
    "activeDeadlineSeconds",
    "shutdownAfterJobFinishes",
    "ttlSecondsAfterFinished",
    "rayClusterSpec",
}
RAY_CLUSTER = {"rayVersion", "authOptions", "headGroupSpec", "workerGroupSpecs"}
HEAD_GROUP = {"rayStartParams", "template"}
WORKER_GROUP = {
    *HEAD_GROUP,
    "groupName",
    "replicas",
    "minReplicas",
    "maxReplicas",
}
CONTAINER = {"name", "image", "command", "env", "resources", "volumeMounts"}


@pytest.fixture(scope="module")
def ray_job() -> dict[str, Any]:
    return yaml.safe_load((CLUSTERS / "rayjob.yaml").read_text())


def groups(ray_job: dict[str, Any]) -> list[dict[str, Any]]:
    cluster = ray_job["spec"]["rayClusterSpec"]
    return [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]


def containers(ray_job: dict[str, Any]) -> list[dict[str, Any]]:
    return [group["template"]["spec"]["containers"][0] for group in groups(ray_job)]


def test_the_ray_job_has_only_fields_that_kuberay_knows(ray_job: dict[str, Any]) -> None:
    assert (ray_job["apiVersion"], ray_job["kind"]) == ("ray.io/v1", "RayJob")
    assert set(ray_job["spec"]) == RAY_JOB
    cluster = ray_job["spec"]["rayClusterSpec"]
    assert set(cluster) == RAY_CLUSTER
    assert cluster["authOptions"] == {"mode": "token"}
    assert set(cluster["headGroupSpec"]) == HEAD_GROUP
    for group in cluster["workerGroupSpecs"]:
        assert set(group) == WORKER_GROUP
        assert group["minReplicas"] == group["replicas"] == group["maxReplicas"]
    for container in containers(ray_job):
        assert set(container) == CONTAINER


def test_pods_of_the_ray_job_hold_the_npus_that_ray_is_told(ray_job: dict[str, Any]) -> None:
    for group, container in zip(groups(ray_job), containers(ray_job), strict=True):
        params = group["rayStartParams"]
        assert all(isinstance(value, str) for value in params.values())
        # KubeRay writes --key=value into a shell command.
        command = " ".join(f"--{key}={value}" for key, value in params.items())
        options = parse_ray_start(f"ray start {command}")
        held = container["resources"]
        assert options["resources"] == {"NPU": int(held["limits"]["huawei.com/Ascend910"])}
        assert options["num_cpus"] == int(held["limits"]["cpu"])
        assert held["requests"] == held["limits"]  # else Kubernetes refuses the NPUs
        assert container["command"] == ["source /usr/local/Ascend/ascend-toolkit/set_env.sh"]
        assert {"name": "RAY_worker_niceness", "value": "0"} in container["env"]


def test_the_study_of_the_ray_job_lies_where_all_pods_see_it(ray_job: dict[str, Any]) -> None:
    study = composed(shlex.split(ray_job["spec"]["entrypoint"])).study
    storage = yaml.safe_load((CLUSTERS / "rayjob_storage.yaml").read_text())
    assert storage["spec"]["accessModes"] == ["ReadWriteMany"]
    for group, container in zip(groups(ray_job), containers(ray_job), strict=True):
        (mount,) = container["volumeMounts"]
        (volume,) = group["template"]["spec"]["volumes"]
        assert volume["name"] == mount["name"]
        assert volume["persistentVolumeClaim"]["claimName"] == storage["metadata"]["name"]
        assert Path(study.dir).is_relative_to(mount["mountPath"])


def test_the_sweep_of_the_ray_job_fits_its_pods_and_ends_before_them(
    ray_job: dict[str, Any],
) -> None:
    spec = ray_job["spec"]
    assert "$" not in spec["entrypoint"]  # the submitting pod's shell would expand it
    config = composed(shlex.split(spec["entrypoint"]))
    assert (config.cluster.device, config.cluster.address) == ("npu", "auto")
    nodes = 1 + sum(group["replicas"] for group in spec["rayClusterSpec"]["workerGroupSpecs"])
    wanted = config.cluster.devices_per_trial * config.cluster.max_concurrent_trials
    assert wanted == 8 * nodes
    assert config.search.max_hours * 3600 < spec["activeDeadlineSeconds"]


def test_the_ray_job_takes_the_password_from_a_secret(ray_job: dict[str, Any]) -> None:
    (password,) = [one for one in containers(ray_job)[0]["env"] if one["name"] == "PGPASSWORD"]
    reference = password["valueFrom"]["secretKeyRef"]
    made = (CLUSTERS / "rayjob_storage.yaml").read_text()
    assert f"secret generic {reference['name']} --from-file={reference['key']}=FILE" in made


# By hand


@pytest.fixture
def run_dir(tmp_path: Path) -> Iterator[Path]:
    """A folder for Ray with a short path, which pytest's are not."""
    folder = short_folder(tmp_path)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def desk(tmp_path: Path, run_dir: Path) -> Iterator[Desk]:
    desk = Desk.make(tmp_path, "srun", "scontrol", "ray", "python")
    yield desk
    desk.run("start_by_hand.sh", "stop", RUN_DIR=str(run_dir))


def by_hand(desk: Desk, run_dir: Path, *words: str, **more: str) -> tuple[int, str]:
    env = {"RUN_DIR": str(run_dir), "NPUS": "8", "START_LIMIT_S": "10", **more}
    return desk.run("start_by_hand.sh", *words, **env)


def started(desk: Desk) -> tuple[dict[str, Any], Any]:
    (call,) = [call for call in desk.calls("ray") if call[0][0] == "start"]
    return parse_ray_start(shlex.join(["ray", *call[0]])), call[1]


def test_head_by_hand(desk: Desk, run_dir: Path) -> None:
    code, said = by_hand(desk, run_dir, "head", PORT="6400", CPUS="3")
    assert code == 0, said
    options, env = started(desk)
    assert (options["head"], options["port"], options["block"]) == (True, 6400, True)
    assert (options["resources"], options["num_cpus"]) == ({"NPU": 8}, 3)
    assert options["include_dashboard"] is False
    assert (env["RAY_worker_niceness"], env["RAY_AUTH_MODE"]) == ("0", "token")
    token = desk.folder / "home" / ".ray" / "auth_token"
    assert token.stat().st_mode & 0o077 == 0
    assert "start_by_hand.sh worker 10.0.0.1:6379" in said
    assert "cluster.address=10.0.0.1:6379" in said


def test_worker_by_hand(desk: Desk, run_dir: Path) -> None:
    words = ("worker", "10.0.0.1:6379", "--min-worker-port=30000")
    code, said = by_hand(desk, run_dir, *words, RAY_AUTH_TOKEN="given", NPUS="16")
    assert code == 0, said
    options, _ = started(desk)
    assert (options["head"], options["address"]) == (False, "10.0.0.1:6379")
    assert options["resources"] == {"NPU": 16}
    assert options["include_dashboard"] is None  # Ray takes it for a head only
    assert options["min_worker_port"] == 30000


def test_a_worker_without_the_heads_token_is_not_started(desk: Desk, run_dir: Path) -> None:
    code, said = by_hand(desk, run_dir, "worker", "10.0.0.1:6379")
    assert code == 1
    assert "copy it from the head's host" in said
    assert desk.calls("ray") == []


def test_cann_is_sourced_before_ray(desk: Desk, run_dir: Path) -> None:
    cann = desk.folder / "cann"
    cann.mkdir()
    # As CANN's does, it reads what may be unset.
    (cann / "set_env.sh").write_text('export FROM_CANN="here:$NOT_SET_BY_ANYBODY"\n')
    assert by_hand(desk, run_dir, "head", CANN_HOME=str(cann))[0] == 0
    assert started(desk)[1]["FROM_CANN"] == "here:"
    code, said = by_hand(desk, run_dir, "head", CANN_HOME="/nowhere")
    assert code == 1
    assert "CANN_HOME=/nowhere has no set_env.sh" in said


@pytest.mark.skipif(shutil.which("ip") is None, reason="this host has no `ip`")
def test_an_interface_gives_ray_and_the_ranks_their_network(desk: Desk, run_dir: Path) -> None:
    assert by_hand(desk, run_dir, "head", INTERFACE="lo")[0] == 0
    options, env = started(desk)
    assert options["node_ip_address"] == "127.0.0.1"
    assert (env["HCCL_IF_IP"], env["GLOO_SOCKET_IFNAME"]) == ("127.0.0.1", "lo")
    code, said = by_hand(desk, run_dir, "worker", "10.0.0.1:6379", INTERFACE="none0")
    assert code == 1
    assert "INTERFACE=none0 has no IPv4 address" in said


def test_npus_are_counted_as_they_are_visible(desk: Desk, run_dir: Path) -> None:
    assert by_hand(desk, run_dir, "head", NPUS="", ASCEND_RT_VISIBLE_DEVICES="4,5,6")[0] == 0
    assert started(desk)[0]["resources"] == {"NPU": 3}


@pytest.mark.skipif(list(Path("/dev").glob("davinci[0-9]*")) != [], reason="this host has NPUs")
def test_a_host_without_npus_must_be_meant(desk: Desk, run_dir: Path) -> None:
    code, said = by_hand(desk, run_dir, "head", NPUS="")
    assert code == 1
    assert "NPUS=0" in said
    assert by_hand(desk, run_dir, "head", NPUS="0")[0] == 0
    assert started(desk)[0]["resources"] == {"NPU": 0}


def test_a_second_head_is_refused_and_stop_makes_room(desk: Desk, run_dir: Path) -> None:
    assert by_hand(desk, run_dir, "head")[0] == 0
    pid = int((run_dir / "head.pid").read_text())
    code, said = by_hand(desk, run_dir, "head")
    assert code == 1
    assert "a head runs here already" in said
    assert is_running(pid)
    code, said = by_hand(desk, run_dir, "stop")
    assert (code, said) == (0, f"ended the head, process {pid}\n")
    assert not is_running(pid)
    assert by_hand(desk, run_dir, "head")[0] == 0


def test_stop_spares_a_process_that_got_an_old_number(desk: Desk, run_dir: Path) -> None:
    run_dir.mkdir()
    with subprocess.Popen(["sleep", "60"]) as other:
        (run_dir / "head.pid").write_text(f"{other.pid}\n")
        code, said = by_hand(desk, run_dir, "stop")
        assert (code, said, other.poll()) == (0, "", None)
        other.kill()


def test_a_worker_that_fails_leaves_the_head_alone(desk: Desk, run_dir: Path) -> None:
    assert by_hand(desk, run_dir, "head")[0] == 0
    code, said = by_hand(desk, run_dir, "worker", "10.0.0.1:6379", RAY_FAILS="yes")
    assert code == 1
    assert str(run_dir / "worker.log") in said
    assert is_running(int((run_dir / "head.pid").read_text()))


def test_a_path_too_long_for_rays_sockets_is_refused(desk: Desk, run_dir: Path) -> None:
    code, said = by_hand(desk, run_dir, "head", RUN_DIR="/tmp/" + 21 * "a")
    assert code == 1
    assert "longer than 25 characters" in said


@pytest.mark.parametrize("words", [(), ("worker",), ("worker", "host"), ("status",)])
def test_a_wrong_call_is_answered_with_the_right_ones(
    desk: Desk, run_dir: Path, words: tuple[str, ...]
) -> None:
    code, said = by_hand(desk, run_dir, *words)
    assert code == 2
    assert [line.split()[1] for line in said.splitlines()] == ["head", "worker", "stop"]


# Slurm


@pytest.fixture
def job(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a job; its number makes the name of Ray's folder."""
    number = f"t{os.getpid()}{abs(hash(tmp_path.name)) % 1000}"
    yield {
        **JOB,
        "SLURM_JOB_ID": number,
        "AUTOTUNE": str(CLUSTERS.parents[1]),
        "VENV": "",
        "CANN_HOME": "",
    }
    shutil.rmtree(f"/tmp/at-{number}", ignore_errors=True)


def sweep_words(desk: Desk) -> list[str]:
    (words,) = [words for words, _ in desk.calls("python") if words[0] == "-m"]
    return ["python", *words]


def test_the_job_starts_ray_on_each_node_and_the_sweep_on_the_first(
    desk: Desk, job: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = "postgresql://me@host/studies"
    more = {"SWEEP_ENDS_WITH": "3", "AUTOTUNE_STORAGE": storage}
    code, said = desk.run("slurm.sh", "search.seed=3", **job, **more)
    assert code == 3, said
    (head, _), (worker, _) = desk.calls("srun")
    assert {"--nodes=1", "--ntasks=1", "--nodelist=node-a", "--cpu-bind=none"} <= set(head)
    assert {"--nodes=1", "--ntasks=1", "--exclude=node-a", "--cpu-bind=none"} <= set(worker)
    assert worker[-2:] == ["worker", "10.0.0.1:6379"]
    monkeypatch.setenv("AUTOTUNE_STORAGE", storage)
    config = composed(sweep_words(desk))
    cluster = config.cluster
    assert (cluster.address, cluster.device, cluster.devices_per_trial) == (
        "10.0.0.1:6379",
        "npu",
        8,
    )
    assert (cluster.nodes_per_trial, cluster.max_concurrent_trials) == (1, 2)
    assert config.search.seed == 3
    assert config.trainer.root == str(desk.folder / "home" / "MindSpeed-MM")
    assert config.study.storage == storage
    assert not any("postgresql" in word for word in sweep_words(desk))


def test_a_trial_may_take_all_nodes_of_the_job(desk: Desk, job: dict[str, str]) -> None:
    more = {"NODES_PER_TRIAL": "2", "NPUS": "16", "TRAINER_ROOT": ""}
    code, said = desk.run("slurm.sh", **job, **more)
    assert code == 0, said
    config = composed(sweep_words(desk))
    assert (config.cluster.devices_per_trial, config.cluster.nodes_per_trial) == (32, 2)
    assert config.cluster.max_concurrent_trials == 1
    assert config.study.storage is None
    assert config.trainer.root is None


@pytest.mark.parametrize("told", ["SLURM_JOB_END_TIME", "END_TIME"])
def test_the_sweep_ends_before_the_job(desk: Desk, job: dict[str, str], told: str) -> None:
    end = time.time() + 3 * 3600
    local = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(end))
    value = str(int(end)) if told == "SLURM_JOB_END_TIME" else local
    assert desk.run("slurm.sh", **job, **{told: value})[0] == 0
    hours = composed(sweep_words(desk)).search.max_hours
    assert hours == pytest.approx(3 - 600 / 3600, abs=0.02)


def test_a_job_without_an_end_leaves_the_sweep_unbounded(desk: Desk, job: dict[str, str]) -> None:
    assert desk.run("slurm.sh", **job)[0] == 0
    assert composed(sweep_words(desk)).search.max_hours is None


def test_a_job_that_is_nearly_over_starts_no_sweep(desk: Desk, job: dict[str, str]) -> None:
    code, said = desk.run("slurm.sh", **job, SLURM_JOB_END_TIME=str(int(time.time()) + 300))
    assert code == 1
    assert "give it more --time" in said
    assert [words[0] for words, _ in desk.calls("python")] == ["-c"]


def test_slurms_signal_lets_the_sweep_close_and_ends_ray(desk: Desk, job: dict[str, str]) -> None:
    process = desk.start("slurm.sh", **job, SWEEP_LASTS="yes")
    wait_for((desk.work / "running").exists)
    nodes = desk.pids("ray")[-2:]
    assert all(map(is_running, nodes))
    process.send_signal(signal.SIGTERM)
    said = "".join(process.communicate(timeout=20))
    assert process.returncode == 130, said
    assert (desk.work / "closed").exists()
    assert not any(map(is_running, nodes))


def test_a_node_that_cannot_start_ends_the_job_at_once(desk: Desk, job: dict[str, str]) -> None:
    begun = time.monotonic()
    code, said = desk.run("slurm.sh", **job, RAY_FAILS="yes")
    assert code == 1
    assert "Ray ended on a node" in said
    assert time.monotonic() - begun < 15
    assert desk.calls("python") == []


def test_nodes_that_do_not_join_are_not_waited_for_for_ever(
    desk: Desk, job: dict[str, str]
) -> None:
    code, said = desk.run("slurm.sh", **job, NODES_HERE="1", JOIN_LIMIT_S="3")
    assert code == 1
    assert "1 of 2 nodes joined within JOIN_LIMIT_S=3 s" in said


# Real Ray: two nodes on this host. 127.0.0.2 since Ray takes 127.0.0.1 to mean another address.

LOOPBACK = "127.0.0.2"
SIDE_BY_SIDE = ("--min-worker-port=0", "--max-worker-port=0", f"--object-store-memory={80 << 20}")
NODES = """
import json, sys, ray
ray.init(address=sys.argv[1], log_to_driver=False, logging_level="ERROR")
print(json.dumps([[n["NodeManagerAddress"], n["Resources"].get("NPU")] for n in ray.nodes()]))
"""


def real_env(desk: Desk, **more: str) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}:{desk.env()['PATH']}"
    lease = PortLease.take(1)
    lease.release()
    return {
        "PATH": path,
        "NODE_IP": LOOPBACK,
        "PORT": str(lease.port),
        "NPUS": "4",
        "CPUS": "1",
        **more,
    }


def processes_of(run_dir: str) -> list[str]:
    """Command lines of what runs with this folder."""
    lines = (process.info["cmdline"] for process in psutil.process_iter(["cmdline"]))
    return [" ".join(line) for line in lines if line and any(run_dir in word for word in line)]


@pytest.fixture
def plain_desk(tmp_path: Path) -> Desk:
    """Without stand-ins for Ray and Python."""
    return Desk.make(tmp_path, "srun", "scontrol")


@pytest.mark.ray
def test_head_and_worker_by_hand_become_one_cluster(plain_desk: Desk, run_dir: Path) -> None:
    desk, env = plain_desk, real_env(plain_desk, RUN_DIR=str(run_dir))
    address = f"{LOOPBACK}:{env['PORT']}"
    try:
        code, said = desk.run("start_by_hand.sh", "head", *SIDE_BY_SIDE, **env)
        assert code == 0, said
        assert f"cluster.address={address}" in said
        code, said = desk.run("start_by_hand.sh", "worker", address, *SIDE_BY_SIDE, **env)
        assert code == 0, said
        seen = subprocess.run(
            [sys.executable, "-c", NODES, address],
            env={**desk.env(), "RAY_AUTH_MODE": "token"},
            capture_output=True,
            check=True,
            timeout=30,
        )
        assert json.loads(seen.stdout.splitlines()[-1]) == [[LOOPBACK, 4.0], [LOOPBACK, 4.0]]
    finally:
        code, said = desk.run("start_by_hand.sh", "stop", limit_s=70, **env)
    assert code == 0
    assert [line.split(",")[0] for line in said.splitlines()] == [
        "ended the worker",
        "ended the head",
    ]
    assert processes_of(str(run_dir)) == []


@pytest.mark.ray
def test_a_job_with_real_ray_closes_its_sweep_and_leaves_nothing(
    plain_desk: Desk, job: dict[str, str]
) -> None:
    desk = plain_desk
    package = desk.folder / "in_front" / "autotune"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    shutil.copy(CLUSTERS_SWEEP, package / "__main__.py")
    env = real_env(desk, **job, PYTHONPATH=str(package.parent), APPENDED=" ".join(SIDE_BY_SIDE))
    process = desk.start("slurm.sh", **env)
    try:
        wait_for((desk.work / "sweep.json").exists, limit_s=60)
    finally:
        process.send_signal(signal.SIGTERM)
        said = "".join(process.communicate(timeout=60))
    assert process.returncode == 130, said
    assert (desk.work / "closed").exists()
    met = json.loads((desk.work / "sweep.json").read_text())
    assert met["nodes"] == [4, 4]
    assert met["niceness"] == 0
    assert processes_of(f"/tmp/at-{job['SLURM_JOB_ID']}") == []
