"""Texts that people have posted, a few lines each, with what they turned out to be.

kind: as the maintainers or the reporter said, or as the library's own table of errors says.
"""

from __future__ import annotations

from dataclasses import dataclass

from autotune.measure.failures.kinds import FailureKind as Kind
from autotune.ports import DeviceType


@dataclass(frozen=True)
class Case:
    """quoted: what the quote must hold. steps: that the rank had recorded."""

    name: str
    source: str
    text: str
    kind: Kind
    quoted: str
    device: DeviceType = "npu"
    steps: int = 0


ASCEND = (
    Case(
        "npu allocator",
        "github.com/vllm-project/vllm-ascend/issues/1127",
        "RuntimeError: NPU out of memory. Tried to allocate 30.00 MiB (NPU 3; 60.96 GiB total "
        "capacity; 60.34 GiB already allocated; 60.34 GiB current active; 14.24 MiB free; "
        "60.60 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try "
        "setting max_split_size_mb to avoid fragmentation.",
        Kind.DEVICE_OOM,
        "Tried to allocate 30.00 MiB",
    ),
    Case(
        "npu allocator, newer class",
        "github.com/sgl-project/sglang/issues/29838",
        "torch.OutOfMemoryError: NPU out of memory. Tried to allocate 72.00 MiB (NPU 0; 61.27 GiB "
        "total capacity; 56.05 GiB already allocated; 56.05 GiB current active; 5.04 MiB free; "
        "58.39 GiB reserved in total by PyTorch).If reserved memory is >> allocated memory try",
        Kind.DEVICE_OOM,
        "Tried to allocate 72.00 MiB",
    ),
    Case(
        "others hold the npu",  # "NPU device mount with privileged: all devices; rm fixed"
        "github.com/vllm-project/vllm-ascend/issues/1670",
        "RuntimeError: NPU out of memory. Tried to allocate 88.00 MiB (NPU 0; 60.96 GiB total "
        "capacity; 4.24 GiB already allocated; 4.24 GiB current active; 7.47 MiB free; 4.37 GiB "
        "reserved in total by PyTorch) If reserved memory is >> allocated memory try setting",
        Kind.SUSPECT_MACHINE,
        "4.37 GiB",
        steps=3,
    ),
    Case(
        "memory of an HCCL buffer",
        "github.com/vllm-project/vllm-ascend/issues/3141",
        "[rank7]:[E928 07:22:40.736525688 compiler_depend.ts:429] operator():build/CMakeFiles/"
        "torch_npu.dir/compiler_depend.ts:128 NPU function error: call aclnnMoeDistributeDispatchV2"
        " failed, error code is 207001\n"
        "[ERROR] 2025-09-28-07:22:30 (PID:316198, Device:7, RankID:-1) ERR00100 PTA call acl api "
        "failed\n[Error]: Failed to apply for memory.\n"
        "EL0004: [PID: 316198] 2025-09-28-07:22:29.827.496 Failed to allocate memory.\n",
        Kind.DEVICE_OOM,
        "EL0004",
    ),
    Case(
        "no memory to open the device with",
        "github.com/hw-native-sys/PTOAS/pull/341",
        "[ERROR] aclrtSetDevice(deviceId) failed: 507033 (/tmp/main.cpp:72)\n"
        "[ERROR] RecentErrMsg: [PID: 1613532] 2026-03-24-12:14:45.885.234 "
        "Memory_Allocation_Failure(EL0004): Failed to allocate memory.\n"
        "        Possible Cause: Available memory is insufficient.\n"
        "        rtSetDevice execution failed, reason=device retain error[FUNC:FuncErrorReason]\n",
        Kind.SUSPECT_MACHINE,
        "Failed to allocate memory",
    ),
    Case(
        "pinned memory",
        "torch_npu csrc/core/npu/CachingHostAllocator.cpp",
        "RuntimeError: Malloc pin memory failed, host out of memory, Rried to allocate size: "
        "8589934592, total_allocated_memory: 0, total_reserved_memory: 0. You might be able to",
        Kind.PINNED_HOST_OOM,
        "host out of memory",
    ),
    Case(
        "a rank waits for a socket",
        "github.com/vllm-project/vllm-ascend/issues/486",
        "[rank1]: RuntimeError: InnerRunOpApi:torch_npu/csrc/framework/OpParamMaker.cpp:281 OPS "
        "function error: HcclAllreduce, error code is 6\n"
        "[rank1]: [ERROR] 2025-04-08-18:07:20 (PID:1292363, Device:1, RankID:1) ERR01100 OPS call "
        "acl api failed.\n"
        "[rank1]: EI0006: [PID: 1292363] 2025-04-08-18:07:20.444.436 Getting socket times out. "
        "Reason: Remote Rank did not send the data in time.\n",
        Kind.COLLECTIVE_TIMEOUT,
        "Getting socket times out",
    ),
    Case(
        "hccl task timeout without its own code",
        "github.com/Ascend/pytorch/issues/54",
        "RuntimeError: ACL stream synchronize failed.\nEI9999: Inner Error!\n"
        "EI9999: 2024-10-21-10:42:00.358.410  The error from device(chipId:3, dieId:0), serial "
        "number is 9, hccl fftsplus task timeout occurred during task execution, stream_id:5\n",
        Kind.COLLECTIVE_TIMEOUT,
        "hccl fftsplus task timeout",
    ),
    Case(
        "the last training still runs",
        "github.com/hiyouga/LlamaFactory/issues/3839",
        "RuntimeError: [ERROR] HCCL error in: torch_npu/csrc/distributed/ProcessGroupHCCL.cpp:64\n"
        "[ERROR] 2024-05-21-11:57:54 (PID:927000, Device:3, RankID:3) ERR02200 DIST call hccl api "
        "failed.\nEJ0001: 2024-05-21-11:57:54.167.645 Failed to initialize the HCCP process. "
        "Reason: Maybe the last training process is running.\n",
        Kind.SUSPECT_MACHINE,
        "Maybe the last training process is running",
    ),
    Case(
        "hccl port, older code",
        "github.com/vllm-project/vllm-ascend/issues/405",
        "[rank0]: RuntimeError: createHCCLComm:build/CMakeFiles/torch_npu.dir/compiler_depend.ts:"
        "1479 HCCL function error: HcclGetRootInfo(&hcclID), error code is 11\n"
        "[rank0]: [ERROR] 2025-03-26-17:01:03 (PID:159, Device:0, RankID:-1) ERR02200 DIST call "
        "hccl api failed.\n"
        "[rank0]: EJ0003: [PID: 159] 2025-03-26-17:01:02.816.428 Failed to bind the IP port. "
        "Reason: The IP address and port have been bound already.\n",
        Kind.PORT_IN_USE,
        "Failed to bind the IP port",
    ),
    Case(
        "hccl port, newer code; the vector core then waits",
        "github.com/vllm-project/vllm-ascend/pull/16205",
        "[PID: 7] 2026-09-10-03:00:00.000.000 Communication_Error_Bind_IP_Port(EI0019): Failed to "
        "enable listening for the host network adapter socket.\n"
        "RuntimeError: NPU function error: aclrtSynchronizeStream, error code is 507034\n",
        Kind.PORT_IN_USE,
        "EI0019",
    ),
    Case(
        "heartbeat",
        "github.com/vllm-project/vllm-ascend/issues/8186",
        "        Device[1] lost heartbeat.[FUNC:SyncTask][FILE:direct_hwts_engine.cc][LINE:407]\n"
        "        wait for compute device to finish failed, runtime result = 507010."
        "[FUNC:ReportCallError]\n",
        Kind.DEVICE_ERROR,
        "lost heartbeat",
    ),
    Case(
        "uncorrectable memory",  # Ascend documentation: 507054, HBM bits beyond correction
        "torch_npu csrc/core/npu/NPUException.cpp",
        "RuntimeError: synchronize:torch_npu/csrc/core/npu/NPUStream.cpp:370 NPU function error: "
        "HBM MULTI BIT ECC ERROR.time us= 17.time is 17, error code is 507054",
        Kind.DEVICE_ERROR,
        "HBM MULTI BIT ECC ERROR",
    ),
    Case(
        "a kernel reads where it may not",
        "github.com/huawei-csl/pto-dsl/pull/90",
        "RuntimeError: synchronize:x.ts:1 NPU function error: aclrtSynchronizeStream, error code "
        "is 507015\n[Error]: The aicore execution is abnormal. \nEZ9999: Inner Error!\n"
        "EZ9999[PID: 8146] 2026-03-16-20:13:22.806.034 (EZ9999):  The error from device(chipId:7, "
        "dieId:0), serial number is 6, there is an exception of fftsplus aicore error, core id 12",
        Kind.KERNEL_ERROR,
        "exception of fftsplus aicore error",
    ),
    Case(
        "no cann",
        "github.com/LinZhekai/X-Oscar/issues/4",
        "ImportError: libhccl.so: cannot open shared object file: No such file or directory. "
        "Please check that the cann package is installed. Please run 'source set_env.sh' in the "
        "CANN installation path.\n[ERROR] 2024-06-20-10:41:32 (PID:59450, Device:-1, RankID:-1) "
        "ERR00008 PTA resource not found\n",
        Kind.ENVIRONMENT_BROKEN,
        "libhccl.so",
    ),
)

CUDA = (
    Case(
        "cuda allocator, first form",
        "github.com/NVlabs/ODISE/issues/34",
        "RuntimeError: CUDA out of memory. Tried to allocate 32.00 MiB (GPU 0; 23.69 GiB total "
        "capacity; 21.31 GiB already allocated; 12.06 MiB free; 21.46 GiB reserved in total by "
        "PyTorch)",
        Kind.DEVICE_OOM,
        "Tried to allocate 32.00 MiB",
        "cuda",
    ),
    Case(
        "others hold the gpu",  # "There may be other programs that consume you GPU RAM."
        "github.com/phamquiluan/ResidualMaskingNetwork/issues/15",
        "RuntimeError: CUDA out of memory. Tried to allocate 36.00 MiB (GPU 0; 10.76 GiB total "
        "capacity; 996.23 MiB already allocated; 8.81 MiB free; 1010.00 MiB reserved in total by "
        "PyTorch)",
        Kind.SUSPECT_MACHINE,
        "1010.00 MiB reserved",
        "cuda",
        steps=5,
    ),
    Case(
        "others hold the gpu, said by a maintainer",  # "something else is hanging on to the memory"
        "github.com/pytorch/pytorch/issues/40863",
        "RuntimeError: CUDA out of memory. Tried to allocate 60.00 MiB (GPU 0; 11.17 GiB total "
        "capacity; 505.96 MiB already allocated; 12.50 MiB free; 530.00 MiB reserved in total by "
        "PyTorch)",
        Kind.SUSPECT_MACHINE,
        "530.00 MiB",
        "cuda",
        steps=5,
    ),
    Case(
        "the driver refuses what is free",
        "github.com/pytorch/pytorch/issues/16417",
        "RuntimeError: CUDA out of memory. Tried to allocate 12.50 MiB (GPU 0; 10.92 GiB total "
        "capacity; 8.57 MiB already allocated; 9.28 GiB free; 4.68 MiB cached)",
        Kind.SUSPECT_MACHINE,
        "9.28 GiB free",
        "cuda",
        steps=5,
    ),
    Case(
        "nccl finds no memory",
        "github.com/NVIDIA/nccl/issues/1235",
        "ng30903:3063028:3066152 [3] include/alloc.h:178 NCCL WARN Cuda failure 'out of memory'\n"
        "ng30903:3063028:3066152 [3] include/alloc.h:185 NCCL WARN Failed to CUDA calloc 6291456 "
        "bytes\n",
        Kind.DEVICE_OOM,
        "Cuda failure 'out of memory'",
        "cuda",
    ),
    Case(
        "ecc",  # "This usually means a hardware error"
        "github.com/vllm-project/vllm/issues/5222",
        "RuntimeError: CUDA error: uncorrectable ECC error encountered\n"
        "CUDA kernel errors might be asynchronously reported at some other API call\n",
        Kind.DEVICE_ERROR,
        "uncorrectable ECC",
        "cuda",
    ),
    Case(
        "off the bus",
        "github.com/wilicc/gpu-burn/issues/1",
        "[74889.644138] NVRM: Xid (PCI:0000:02:00): 79, GPU has fallen off the bus.\n",
        Kind.DEVICE_ERROR,
        "fallen off the bus",
        "cuda",
    ),
    Case(
        "illegal access",
        "github.com/axolotl-ai-cloud/axolotl/issues/1473",
        "[E ProcessGroupNCCL.cpp:1182] [Rank 1] NCCL watchdog thread terminated with exception: "
        "CUDA error: an illegal memory access was encountered\n",
        Kind.KERNEL_ERROR,
        "illegal memory access",
        "cuda",
    ),
    Case(
        "another process has the gpu to itself",  # compute mode E. Process
        "github.com/NVIDIA/DIGITS/issues/2005",
        "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable\n",
        Kind.SUSPECT_MACHINE,
        "busy or unavailable",
        "cuda",
    ),
    Case(
        "shared memory of nccl",  # "It is likely that /dev/shm is full."
        "github.com/NVIDIA/nccl/issues/525",
        "[3] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device\n"
        "[3] NCCL INFO include/shm.h:41 -> 2\n",
        Kind.SHARED_MEMORY_FULL,
        "posix_fallocate",
        "cuda",
    ),
    Case(
        "a link",  # "Some of the nodes had IB issues."
        "github.com/NVIDIA/nccl/issues/2076",
        "torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/"
        "NCCLUtils.hpp:268, remote process exited or there was a network error, NCCL version "
        "2.21.5\nncclRemoteError: A call failed possibly due to a network error or a remote "
        "process exiting prematurely.\n",
        Kind.COLLECTIVE_TIMEOUT,
        "ncclRemoteError",
        "cuda",
    ),
    Case(
        "port",
        "github.com/modelscope/ms-swift/issues/3988",
        "RuntimeError: The server socket has failed to listen on any local network address. port: "
        "29500, useIpv6: 0, code: -98, name: EADDRINUSE, message: address already in use\n",
        Kind.PORT_IN_USE,
        "29500",
        "cuda",
    ),
    Case(
        "pinned in the loader's thread",
        "github.com/mittagessen/kraken/issues/642",
        "RuntimeError: Caught RuntimeError in pin memory thread for device 0.\n"
        "Original Traceback (most recent call last):\n"
        '  File "/env/site-packages/torch/utils/data/_utils/pin_memory.py", line 37, '
        "in do_one_step\n    data = pin_memory(data, device)\n"
        '  File "/env/site-packages/torch/utils/data/_utils/pin_memory.py", line 58, '
        "in pin_memory\n    return data.pin_memory(device)\n"
        "RuntimeError: CUDA error: out of memory\n",
        Kind.PINNED_HOST_OOM,
        "CUDA error: out of memory",
        "cuda",
    ),
)

HOST = (
    Case(
        "kernel",
        "github.com/equinor/ert/issues/7797",
        "2024-04-29T14:55:41,679700+02:00 Out of memory: Killed process 1440763 (perl) "
        "total-vm:87033376kB, anon-rss:60356340kB, file-rss:0kB\n",
        Kind.HOST_OOM,
        "Killed process 1440763",
    ),
    Case(
        "slurm",
        "github.com/snakemake/snakemake-executor-plugin-slurm/pull/371",
        "slurmstepd: error: Detected 2 oom_kill events in StepId=JOBID.13. Some of the step tasks "
        "have been OOM Killed.\nsrun: error: NODE: task 0: Out Of Memory\n",
        Kind.HOST_OOM,
        "Detected 2 oom_kill events",
    ),
    Case(
        "deepspeed's launcher",  # "-9 is system out of memory"
        "github.com/deepspeedai/DeepSpeed/issues/4239",
        "[2023-08-31 10:00:00,000] [ERROR] [launch.py:321:sigkill_handler] ['python', 'train.py'] "
        "exits with return code = -9\n",
        Kind.HOST_OOM,
        "return code = -9",
    ),
    Case(
        "loader and /dev/shm",
        "github.com/facebookresearch/mmf/issues/441",
        "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient "
        "shared memory (shm).\nRuntimeError: DataLoader worker (pid 263230) is killed by signal: "
        "Bus error. It is possible that dataloader's workers are out of shared memory.\n",
        Kind.SHARED_MEMORY_FULL,
        "bus error",
    ),
    Case(
        "a semaphore in /dev/shm",
        "github.com/Plachtaa/VITS-fast-fine-tuning/issues/397",
        "/env/lib/python3.8/site-packages/joblib/_multiprocessing_helpers.py:46: UserWarning: "
        "[Errno 28] No space left on device.  joblib will operate in serial mode\n"
        "Traceback (most recent call last):\n"
        '  File "finetune_speaker_v2.py", line 55, in main\n'
        "    mp.spawn(run, nprocs=n_gpus, args=(n_gpus, hps,))\n"
        '  File "/env/lib/python3.8/multiprocessing/synchronize.py", line 57, '
        "in __init__\n    sl = self._semlock = _multiprocessing.SemLock(\n"
        "OSError: [Errno 28] No space left on device\n",
        Kind.SHARED_MEMORY_FULL,
        "OSError: [Errno 28]",
    ),
    Case(
        "disk",
        "github.com/hiyouga/LlamaFactory/issues/5155",
        "safetensors_rust.SafetensorError: Error while serializing: IoError(Os { code: 28, kind: "
        'StorageFull, message: "No space left on device" })\n',
        Kind.DISK_FULL,
        "StorageFull",
    ),
    Case(
        "quota",
        "github.com/open-mmlab/mmdetection/issues/12069",
        "OSError: [Errno 122] Disk quota exceeded\n",
        Kind.DISK_FULL,
        "quota",
    ),
)

PROGRAMS = (
    Case(
        "argparse",
        "github.com/alibaba/Pai-Megatron-Patch/issues/21",
        "finetune_huggingface_chatglm.py: error: unrecognized arguments: --DDP-impl local\n"
        "[2023-09-18 08:19:24,158] torch.distributed.elastic.multiprocessing.api: [ERROR] failed "
        "(exitcode: 2) local_rank: 0 (pid: 986) of binary: /usr/bin/python\n",
        Kind.CONFIGURATION_REFUSED,
        "--DDP-impl local",
    ),
    Case(
        "megatron's checks",
        "github.com/modelscope/ms-swift/issues/5737",
        "[rank14]: Traceback (most recent call last):\n"
        '[rank14]:   File "/x/Megatron-LM/megatron/training/arguments.py", line 561, in '
        "validate_args\n"
        "[rank14]:     assert num_layers % args.transformer_pipeline_model_parallel_size == 0, \\\n"
        "[rank14]: AssertionError: Number of layers should be divisible by the pipeline-model-"
        "parallel size\n",
        Kind.CONFIGURATION_REFUSED,
        "Number of layers should be divisible",
    ),
    Case(
        "pydantic",
        "github.com/FlagOpen/FlagEmbedding/issues/1487",
        "[rank3]: pydantic_core._pydantic_core.ValidationError: 5 validation errors for "
        "DeepSpeedBF16Config\n[rank3]: loss_scale\n"
        "[rank3]:   Extra inputs are not permitted [type=extra_forbidden, input_value=0]\n",
        Kind.CONFIGURATION_REFUSED,
        "DeepSpeedBF16Config",
    ),
    Case(
        "mindspeed-mm",
        "shared/facts/mindspeed_mm.md, 1",
        "Traceback (most recent call last):\n"
        '  File "/x/mm/config/config_manager.py", line 355, in _validate_cli_args\n'
        "    raise ConfigValidationError(\n"
        "mindspeed_mm.config.ConfigValidationError: Command-line argument 'parallel' is not "
        "defined\n",
        Kind.CONFIGURATION_REFUSED,
        "'parallel' is not defined",
    ),
    Case(
        "picture",
        "github.com/avishkarsaha/translating-images-into-maps/issues/27",
        "UnidentifiedImageError: Caught UnidentifiedImageError in DataLoader worker process 0.\n"
        "Original Traceback (most recent call last):\n"
        '  File "/usr/local/lib/python3.8/dist-packages/torch/utils/data/_utils/worker.py", line '
        "302, in _worker_loop\n    data = fetcher.fetch(index)\n"
        '  File "/content/code/src/data/dataloader.py", line 148, in __getitem__\n'
        "    image = Image.open(io.BytesIO(value)).convert(mode='RGB')\n"
        '  File "/usr/local/lib/python3.8/dist-packages/PIL/Image.py", line 2895, in open\n'
        "    raise UnidentifiedImageError(\n"
        "PIL.UnidentifiedImageError: cannot identify image file <_io.BytesIO object at 0x7fe1>\n",
        Kind.DATA_ERROR,
        "cannot identify image file",
    ),
    Case(
        "video",  # "it is indeed the video that is corrupted"
        "github.com/OpenBMB/MiniCPM-V/issues/507",
        "decord._ffi.base.DECORDError: [16:33:15] /github/workspace/src/video/video_reader.cc:486: "
        "Error: av_read_frame failed with 1094995529\n",
        Kind.DATA_ERROR,
        "av_read_frame failed",
    ),
    Case(
        "key",
        "github.com/dbolya/yolact/issues/644",
        "KeyError: Caught KeyError in DataLoader worker process 0.\n"
        "Original Traceback (most recent call last):\n"
        '  File "/usr/lib/python3.7/dist-packages/torch/utils/data/_utils/fetch.py", line 44, in '
        "<listcomp>\n    data = [self.dataset[idx] for idx in possibly_batched_index]\n"
        '  File "/content/yolact/data/coco.py", line 94, in __getitem__\n'
        "KeyError: 13\n",
        Kind.DATA_ERROR,
        "KeyError: 13",
    ),
    Case(
        "gradient",
        "github.com/alibaba/Pai-Megatron-Patch/issues/366",
        "AssertionError: Rank 11: found NaN in local grad norm in backward pass before "
        "data-parallel communication collective. Device: 3\n",
        Kind.NOT_FINITE,
        "found NaN in local grad norm",
    ),
    Case(
        "loss scale",
        "github.com/ymcui/Chinese-LLaMA-Alpaca/issues/534",
        "Exception: Current loss scale already at minimum - cannot decrease scale anymore. "
        "Exiting run.\n",
        Kind.NOT_FINITE,
        "already at minimum",
    ),
)

# Found after the tables were written.
LATER = (
    Case(
        "driver",
        "github.com/modelscope/ms-swift/issues/9135",
        "RuntimeError: enable_peer_access:torch_npu/csrc/core/npu/NPUPeerToPeerAccess.cpp:39 NPU "
        "function error: aclrtDeviceEnablePeerAccess(dest_dev, enable_flag_value), error code is "
        "507899\n[ERROR] 2026-04-17-11:29:42 (PID:7136, Device:6, RankID:54) ERR00100 PTA call acl "
        "api failed\n[Error]: An internal error occurs in the Driver module. \n"
        "EL9999: Inner Error!\n",
        Kind.DEVICE_ERROR,
        "507899",
    ),
    Case(
        "no operators for this device",
        "github.com/hiyouga/LlamaFactory/issues/3779",
        "[E OpParamMaker.cpp:273] call aclnnCast failed, detail:EZ9999: Inner Error!\n"
        "EZ9999: 2024-05-17-01:30:26.960.959  Op Cast does not has any binary.\n"
        "        TraceBack (most recent call last):\n"
        "        launch failed for Cast, errno:561000.\n",
        Kind.ENVIRONMENT_BROKEN,
        "does not has any binary",
    ),
    Case(
        "an operator's own code",
        "github.com/vllm-project/vllm-ascend/issues/4859",
        "RuntimeError: zero_:build/CMakeFiles/torch_npu.dir/compiler_depend.ts:26 NPU function "
        "error: call aclnnInplaceZero failed, error code is 561103\n",
        Kind.KERNEL_ERROR,
        "aclnnInplaceZero",
    ),
    Case(
        "a segmentation fault in torchrun's summary",
        "github.com/thu-pacman/chitu/issues/102",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n"
        "Root Cause (first observed failure):\n[0]:\n  rank      : 3 (local_rank: 3)\n"
        "  exitcode  : -11 (pid: 21476)\n"
        "  traceback : Signal 11 (SIGSEGV) received by PID 21476\n",
        Kind.CRASHED,
        "exitcode : -11",
    ),
    Case(
        "a bus error in torchrun's log",
        "github.com/NVIDIA/Megatron-LM/issues/516",
        "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -7) local_rank: 0 "
        "(pid: 5275) of binary: /usr/bin/python\n",
        Kind.SHARED_MEMORY_FULL,
        "exitcode: -7",
        "cuda",
    ),
    Case(
        "a video without its key",
        "github.com/2U1/Qwen-VL-Series-Finetune/issues/1",
        "Traceback (most recent call last):\n"
        '  File "/ai/train/Qwen2-VL-Finetune/src/training/data.py", line 181, in __getitem__\n'
        "    all_pixel_values.append(inputs['pixel_values'])\n"
        '  File "/ai/site-packages/transformers/feature_extraction_utils.py", line 87, in '
        "__getitem__\n    return self.data[item]\nKeyError: 'pixel_values'\n",
        Kind.DATA_ERROR,
        "KeyError: 'pixel_values'",
        "cuda",
    ),
    Case(
        "a worker's exception of an older PyTorch",
        "github.com/xinntao/EDVR/issues/72",
        "ValueError: Traceback (most recent call last):\n"
        '  File "/env/site-packages/torch/utils/data/_utils/worker.py", line 99, in _worker_loop\n'
        "    samples = collate_fn([dataset[i] for i in batch_indices])\n"
        '  File "/mnt/sdb/EDVR/codes/data/REDS_dataset.py", line 110, in __getitem__\n'
        "    name_a, name_b = key.split('_')\n"
        "ValueError: not enough values to unpack (expected 2, got 1)\n",
        Kind.DATA_ERROR,
        "not enough values to unpack",
        "cuda",
    ),
    Case(
        "a socket between nodes",
        "github.com/ByteDance-Seed/VeOmni/issues/131",
        "[rank9]: torch.distributed.DistBackendError: NCCL error in /root/pytorch/torch/csrc/"
        "distributed/c10d/NCCLUtils.cpp:77, unhandled system error (run with NCCL_DEBUG=INFO for "
        "details), NCCL version 2.26.6\n"
        "[rank9]: ncclSystemError: System call (e.g. socket, malloc) or external library call "
        "failed or device error.\n[rank9]: Last error:\n"
        "[rank9]: socketPollConnect poll() returned 1, no POLLOUT events\n",
        Kind.COLLECTIVE_TIMEOUT,
        "ncclSystemError",
        "cuda",
    ),
    Case(
        "a check deep in the model",
        "github.com/alibaba/Pai-Megatron-Patch/issues/332",
        "[rank0]: Traceback (most recent call last):\n"
        '[rank0]:   File "/mnt/data/Pai-Megatron-Patch/examples/qwen2/pretrain_qwen.py", line 166, '
        "in forward_step\n"
        "[rank0]: AssertionError: First dimension of the tensor should be divisible by tensor "
        "parallel size\n",
        Kind.CONFIGURATION_REFUSED,
        "First dimension",
        "cuda",
    ),
    Case(
        "a barrier inside the data set's code",
        "github.com/hiyouga/LlamaFactory/issues/8306",
        "[rank8]: Traceback (most recent call last):\n"
        '[rank8]:   File "/x/LLaMA-Factory/src/llamafactory/data/loader.py", line 303, in '
        "get_dataset\n"
        '[rank8]:     with training_args.main_process_first(desc="load dataset"):\n'
        "[rank8]: RuntimeError: create:build/CMakeFiles/torch_npu.dir/compiler_depend.ts:89 HCCL "
        "function error: HcclCommInitRootInfo(numRanks, &rootInfo, rank), error code is 9\n"
        "[rank8]: [ERROR] 2025-06-06-18:07:20 (PID:1, Device:0, RankID:8) ERR02200 DIST call hccl "
        "api failed.\n",
        Kind.COLLECTIVE_TIMEOUT,
        "error code is 9",
    ),
)

ALL = (*ASCEND, *CUDA, *HOST, *PROGRAMS, *LATER)
