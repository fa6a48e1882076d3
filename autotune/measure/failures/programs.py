"""Texts of training programs: refused configurations, broken environments, data, NaN."""

from __future__ import annotations

from autotune.measure.failures.kinds import FailureKind as Kind
from autotune.measure.failures.signature import Scope, Signature

_DATA_FRAMES = (
    r"torch/utils/data/|webdataset/|/datasets/(?:load|builder|arrow_dataset|iterable_dataset)\.py"
    r"|(?<!container\.py) in (?:__getitem__|\w*collate\w*|\w*dataset\w*)$"
)
_CHECK_FRAMES = (
    r"(?:arguments|argument_utils|config_manager|training_args)\.py in "
    r"| in (?:_?validate\w*|_?check_\w*|parse_args\w*|__post_init__)$"
)
_MEDIA = r"\.(?:jpe?g|png|webp|mp4|avi|mkv|wav|flac|jsonl|csv|tsv|parquet|arrow|tar|idx|npy|lmdb)\b"

SIGNATURES: tuple[Signature, ...] = (
    Signature(
        Kind.CONFIGURATION_REFUSED,
        r"^\S+: error: (?:unrecognized arguments|argument |ambiguous option"
        r"|the following arguments are required|one of the arguments)",
        "Python argparse; github.com/deepspeedai/Megatron-DeepSpeed/issues/178",
    ),
    Signature(
        Kind.CONFIGURATION_REFUSED,
        r"^(?:\w+\.)*(?:ConfigValidationError|Config\w*Exception|ConfigKeyError)\b"
        r"|^(?:omegaconf|hydra)\.errors\.\w+|validation errors? for \w+",
        "MindSpeed-MM mm/config; OmegaConf, Hydra and pydantic errors",
        scope=Scope.EXCEPTION,
    ),
    Signature(
        Kind.CONFIGURATION_REFUSED,
        r"^(?:AssertionError|ValueError|TypeError|KeyError|AttributeError)\b",
        "Megatron-LM arguments.py validate_args; github.com/modelscope/ms-swift/issues/5737",
        scope=Scope.EXCEPTION,
        frame=_CHECK_FRAMES,
    ),
    Signature(
        Kind.CONFIGURATION_REFUSED,
        r"^(?:AssertionError|ValueError|RuntimeError): [^\n]*"
        r"(?:(?:not|must be|should be) (?:evenly )?divisible by|not supported)"
        r"|^NotImplementedError\b",
        "github.com/vllm-project/vllm/issues/8097; alibaba/Pai-Megatron-Patch/issues/332",
        scope=Scope.EXCEPTION,
    ),
    Signature(
        Kind.ENVIRONMENT_BROKEN,
        r"^(?:ImportError|ModuleNotFoundError)\b|^OSError: [^\n]*cannot open shared object file"
        r"|undefined symbol: |version `GLIBC\w*_[0-9.]+' not found",
        "Python import system; github.com/BytePioneer-AI/PaddleOCR-NPU/issues/7",
        scope=Scope.EXCEPTION,
    ),
    Signature(
        Kind.ENVIRONMENT_BROKEN,
        r": can't open file '[^\n']*': \[Errno|error while loading shared libraries: "
        r"|: command not found$",
        "CPython Modules/main.c; ld.so(8); bash(1)",
    ),
    Signature(
        Kind.NOT_FINITE,
        r"found (?:NaN|Inf) in local (?:grad norm|forward loss)",
        "Megatron-LM param_and_grad_buffer.py; alibaba/Pai-Megatron-Patch/issues/366",
    ),
    Signature(
        Kind.NOT_FINITE,
        r"Current loss scale already at minimum|returned nan values in its"
        r"|is non-finite, so it cannot be clipped|\b[Ll]oss is (?:nan|NaN|inf)\b"
        r"|^FloatingPointError\b",
        "DeepSpeed loss_scaler.py; PyTorch anomaly mode and clip_grad_norm_",
        scope=Scope.EXCEPTION,
    ),
    Signature(
        Kind.DATA_ERROR,
        r"\bUnidentifiedImageError\b|image file is truncated|\bDECORDError\b"
        r"|^av\.(?:error\.)?\w+Error\b|^(?:\w+\.)*(?:BadZipFile|ReadError|ArrowInvalid)\b"
        r"|Caught \w+ in DataLoader worker process",
        "Pillow, decord, PyAV, PyTorch torch/_utils.py; github.com/OpenBMB/MiniCPM-V/issues/507",
        scope=Scope.EXCEPTION,
    ),
    Signature(
        Kind.DATA_ERROR,
        rf"^FileNotFoundError: [^\n]*{_MEDIA}",
        "Python FileNotFoundError on a file of a data set",
        scope=Scope.EXCEPTION,
    ),
    Signature(
        Kind.DATA_ERROR,
        r"^(?:\w+\.)*(?:KeyError|IndexError|ValueError|TypeError|AttributeError|OSError"
        r"|FileNotFoundError|IsADirectoryError|UnicodeDecodeError|JSONDecodeError|EOFError"
        r"|AssertionError|ZeroDivisionError)\b",
        "an exception raised inside the data pipeline; github.com/dbolya/yolact/issues/644",
        scope=Scope.EXCEPTION,
        frame=_DATA_FRAMES,
    ),
)
