"""Measuring training programs that know nothing of autotune, from inside their ranks.

`launch/rank/run_hooked.py` starts the program's own script after a hook was laid: when the
program imports the module that makes its steps, the hook wraps the function that ends a step.
"""
