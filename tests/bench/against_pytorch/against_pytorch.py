#!/usr/bin/env python3
"""assay-train beside PyTorch in Python on the same machine, in pairs: is eager C++ as fast?

  against_pytorch.py [--program build/runners/bin/assay-train] [--device cuda|cpu] [--seconds 5]
                     [--pairs train:amp-fp16:256,...] [--image 224x224] [--python PYTHON]

Each figure comes from a fresh process, the two sides take turns, and the ratio is ours over theirs.
The Python side does what assay-train does: ResNet-50 of TorchVision (or the same layers, where
TorchVision is missing), channels-last, fused SGD with momentum 0.9, gradients set to None, cuDNN's
search, 8 fixed random batches, the same TF32 switches, CUDA events around the whole window.
Prints one JSON object a pair, then a table on standard error.
"""

import argparse
import json
import subprocess
import sys
import time

DEFAULT_PAIRS = ("train:amp-fp16:256,train:amp-fp16:64,train:fp32:128,train:tf32:256,"
                 "infer:amp-fp16:256")


def ours(options, mode, precision, batch):
    cell = {"spec": {"model": "resnet50", "mode": mode, "precision": precision, "batch": batch,
                     "image": options.image,
                     "stop": {"confidence": 0, "min_seconds": options.seconds,
                              "max_seconds": options.seconds}},
            "device": {"kind": options.device, "ordinal": 0}}
    done = subprocess.run([options.program, "--cell", "-"], input=json.dumps(cell),
                          capture_output=True, text=True)
    if not done.stdout:
        sys.exit(done.stderr)
    record = json.loads(done.stdout.splitlines()[-1])
    if record["outcome"] != "ok":
        return None, record
    return record["fields"]["throughput"], record


def build_model(torch):
    try:
        import torchvision
        return torchvision.models.resnet50()
    except ImportError:
        pass
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, inside, width, stride):
            super().__init__()
            out = width * 4
            self.body = nn.Sequential(
                nn.Conv2d(inside, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(True),
                nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width),
                nn.ReLU(True), nn.Conv2d(width, out, 1, bias=False), nn.BatchNorm2d(out))
            self.shortcut = None
            if stride != 1 or inside != out:
                self.shortcut = nn.Sequential(nn.Conv2d(inside, out, 1, stride, bias=False),
                                              nn.BatchNorm2d(out))
            self.relu = nn.ReLU(True)

        def forward(self, x):
            y = self.body(x)
            y += x if self.shortcut is None else self.shortcut(x)
            return self.relu(y)

    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(True),
              nn.MaxPool2d(3, 2, 1)]
    inside = 64
    for stage, count in enumerate([3, 4, 6, 3]):
        for block in range(count):
            width = 64 << stage
            layers.append(Block(inside, width, 2 if stage and not block else 1))
            inside = width * 4
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, 1000))


def theirs(device, mode, precision, batch, image, seconds):
    """Runs in a process of its own; prints samples a second."""
    import torch
    cuda, tf32 = device == "cuda", precision == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cudnn.benchmark = True
    layout = torch.channels_last
    model = build_model(torch).to(device, memory_format=layout)
    model.train(mode == "train")
    height, width = (int(n) for n in image.split("x"))
    data = [(torch.randn(batch, 3, height, width, device=device).to(memory_format=layout),
             torch.randint(1000, (batch,), device=device)) for _ in range(8)]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9, weight_decay=1e-4,
                                fused=True)
    scaler = torch.amp.GradScaler(device, enabled=precision == "amp-fp16")
    dtype = torch.float16 if precision == "amp-fp16" else torch.bfloat16

    def step(i):
        images, labels = data[i % 8]
        if mode == "infer":
            with torch.inference_mode(), torch.autocast(device, dtype, precision[:3] == "amp"):
                model(images)
            return
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, dtype, enabled=precision[:3] == "amp"):
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    def run(limit):
        if cuda:
            torch.cuda.synchronize()
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
        start, steps = time.monotonic(), 0
        while time.monotonic() - start < limit:
            step(steps)
            steps += 1
        if not cuda:
            return steps, time.monotonic() - start
        end.record()
        torch.cuda.synchronize()
        return steps, begin.elapsed_time(end) / 1e3

    for i in range(3):
        step(i)
    run(2)
    steps, took = run(seconds)
    print(steps * batch / took)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/runners/bin/assay-train")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--pairs", default=DEFAULT_PAIRS)
    parser.add_argument("--image", default="224x224")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--theirs", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.theirs:
        mode, precision, batch = options.theirs
        theirs(options.device, mode, precision, int(batch), options.image, options.seconds)
        return
    table = []
    for pair in options.pairs.split(","):
        mode, precision, batch = pair.split(":")
        throughput, record = ours(options, mode, precision, int(batch))
        done = subprocess.run([options.python, __file__, "--device", options.device, "--image",
                               options.image, "--seconds", str(options.seconds), "--theirs", mode,
                               precision, batch], capture_output=True, text=True)
        python = float(done.stdout) if done.returncode == 0 else None
        ratio = throughput / python if throughput and python else None
        print(json.dumps({"pair": pair, "assay": throughput, "pytorch": python, "ratio": ratio,
                          "record": record,
                          "error": done.stderr[-500:] if python is None else None}), flush=True)
        table.append((pair, throughput, python, ratio))
    for row in table:
        sys.stderr.write("{:24}".format(row[0]) + "".join(
            "{:>12}".format("-" if v is None else f"{v:.3f}" if v < 10 else f"{v:.0f}")
            for v in row[1:]) + "\n")


if __name__ == "__main__":
    main()
