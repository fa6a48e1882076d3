"""Traces of torch.profiler (Kineto) on cpu and cuda -> `Profile`. `reader.read_trace` reads one."""
