"""The decisions of the tuner: what may vary, what to try next, what a run was worth.

Nothing in this package starts a process or touches a device; that is `launch`.
"""

__version__ = "0.1.0"
