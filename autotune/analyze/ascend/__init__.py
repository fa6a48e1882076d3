"""Reads what torch_npu's profiler wrote into the values of `autotune.analyze.profile`."""
