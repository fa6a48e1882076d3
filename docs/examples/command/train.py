"""A small training program that knows nothing of autotune: a numpy MLP on one CPU core.

    python train.py --global-batch 256 --micro-batch 32 --steps 20 [--recompute] [--block 64]
"""

import argparse
import time

import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--global-batch", type=int, default=256)
parser.add_argument("--micro-batch", type=int, default=32, help="samples at a time")
parser.add_argument("--recompute", action="store_true", help="activations again in the backward")
parser.add_argument("--block", type=int, default=None, help="columns of the first layer at a time")
parser.add_argument("--steps", type=int, required=True)
args = parser.parse_args()

random = np.random.default_rng(0)
width, hidden, classes = 384, 1536, 10
w1 = (random.standard_normal((width, hidden)) / width**0.5).astype(np.float32)
w2 = (random.standard_normal((hidden, classes)) / hidden**0.5).astype(np.float32)
inputs = random.standard_normal((args.global_batch, width)).astype(np.float32)
labels = random.integers(classes, size=args.global_batch)


def first_layer(x):
    block = args.block or hidden
    parts = [np.maximum(x @ w1[:, i : i + block], 0) for i in range(0, hidden, block)]
    return np.concatenate(parts, axis=1)


for step in range(1, args.steps + 1):
    start = time.perf_counter()
    g1, g2, loss = np.zeros_like(w1), np.zeros_like(w2), 0.0
    for first in range(0, args.global_batch, args.micro_batch):
        x, y = inputs[first : first + args.micro_batch], labels[first : first + args.micro_batch]
        h = first_layer(x)
        scores = h @ w2
        scores -= scores.max(axis=1, keepdims=True)
        chance = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        loss -= np.log(chance[np.arange(len(y)), y]).sum() / args.global_batch
        chance[np.arange(len(y)), y] -= 1
        chance /= args.global_batch
        if args.recompute:
            h = first_layer(x)
        g2 += h.T @ chance
        g1 += x.T @ ((chance @ w2.T) * (h > 0))
    w1 -= 0.1 * g1
    w2 -= 0.1 * g2
    elapsed = time.perf_counter() - start
    print(f"step {step}/{args.steps} | loss {loss:.4f} | {elapsed * 1e3:.2f} ms", flush=True)
