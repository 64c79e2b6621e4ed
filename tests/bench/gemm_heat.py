#!/usr/bin/env python3
"""Why a card's ceiling of matrix products is below what a short test shows: the same product in PyTorch,
8192 on a side, random-normal operands, ten times after four idle seconds and a thousand times behind eight
seconds of it; what assay-peaks measures lies with the second. One JSON line a precision, with clock, power
and temperature behind the load and behind the ten.

usage: gemm_heat.py        (on a machine with an NVIDIA GPU and PyTorch)
"""
import json
import subprocess
import time

import torch

SIDE = 8192


def clocks():
    return subprocess.run(["nvidia-smi", "--query-gpu=clocks.sm,power.draw,temperature.gpu",
                           "--format=csv,noheader"], capture_output=True, text=True).stdout.strip()


def teraflops(a, b, products):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(products):
        a @ b
    end.record()
    torch.cuda.synchronize()
    return 2 * SIDE**3 * products / (begin.elapsed_time(end) / 1e3) / 1e12


def main():
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = True
    for name, number in (("tf32", torch.float32), ("fp16", torch.float16), ("bf16", torch.bfloat16)):
        a, b = (torch.randn(SIDE, SIDE, device="cuda", dtype=number) for _ in range(2))
        time.sleep(4)
        teraflops(a, b, 3)
        ten = teraflops(a, b, 10)
        idle = clocks()
        start = time.monotonic()
        while time.monotonic() - start < 8:
            teraflops(a, b, 200)
        thousand = teraflops(a, b, 1000)
        print(json.dumps({"precision": name, "after_4_s_idle_10_products": ten,
                          "1000_products_after_8_s": thousand, "clocks_after": clocks(),
                          "clocks_idle": idle}), flush=True)


if __name__ == "__main__":
    main()
