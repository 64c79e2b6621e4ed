#!/usr/bin/env python3
"""The Python side of against_pytorch.py: one cell, in PyTorch, in a process of its own.

Reads a cell file as assay-train does (standard input) and prints one JSON object: throughput, steps,
seconds, host_seconds, warmup_seconds, versions. What it does is what assay-train does: the cell's model
(of TorchVision, timm or transformers; ResNet-50 also of the same layers where TorchVision is missing),
channels-last unless the cell says otherwise, fused SGD with momentum,
GradScaler for amp-fp16, gradients set to None, cuDNN's search, eight fixed random batches in turn, the
same TF32 switches, one window by CUDA events, stop.max_seconds long.

Lane `graph` is torch.cuda.graph over the whole step, one graph for each batch in one pool: a user's
graph has one input into which each batch is copied, which would be work that the other side has not.

Nothing is read from the device in the window, so that Python's queue is as full as it can be; warm-up is
the same rule as common/measure/steady_test.h, on means of windows instead of medians of steps, for the
same reason.
"""

import json
import statistics
import sys
import time

BATCHES = 8


def vision(**options):
    import torchvision
    resnet = torchvision.models.resnet
    return resnet.ResNet(resnet.Bottleneck, **options), "torchvision " + torchvision.__version__


def resnet50_v1():
    import torchvision
    model, where = vision(layers=[3, 4, 6, 3])
    for module in model.modules():  # the stride of a block in its first convolution
        if isinstance(module, torchvision.models.resnet.Bottleneck):
            module.conv1.stride, module.conv2.stride = module.conv2.stride, (1, 1)
    return model, where


def of_timm(name):
    import timm
    return timm.create_model(name), "timm " + timm.__version__


def gpt2_medium():
    """Without dropout, as in models/gpt2.h; `input` to logits, as the others."""
    import transformers
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        n_embd=1024, n_layer=24, n_head=16, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, use_cache=False))
    forward = model.forward
    model.forward = lambda tokens: forward(tokens).logits
    return model, "transformers " + transformers.__version__


def fasterrcnn_resnet50_fpn(image):
    """As runners/train/models/detection: frozen statistics, three trained stages, no resizing. The weight of
    each block's branch is the other side's, so that half precision does not overflow."""
    import torchvision
    from torchvision.models.detection.backbone_utils import resnet_fpn_backbone
    from torchvision.models.detection.faster_rcnn import FasterRCNN
    backbone = resnet_fpn_backbone(backbone_name="resnet50", weights=None, trainable_layers=3)
    for name, buffer in backbone.named_buffers():
        if name.endswith("bn3.weight"):
            buffer.fill_(0.2)
    return (FasterRCNN(backbone, 91, min_size=min(image), max_size=max(image)),
            "torchvision " + torchvision.__version__)


MODELS = {"resnet50_v1": resnet50_v1,
          "resnext101_32x4d": lambda: of_timm("resnext101_32x4d"),
          "se_resnext101_32x4d": lambda: of_timm("seresnext101_32x4d"),
          "swin_l": lambda: of_timm("swin_large_patch4_window7_224"),
          "gpt2_medium": gpt2_medium}


def resnet50(torch):
    try:
        import torchvision
        return torchvision.models.resnet50(), "torchvision " + torchvision.__version__
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
    return (nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, 1000)),
            "own layers")


class Side:
    def __init__(self, torch, cell):
        self.torch = torch
        spec = cell["spec"]
        self.device = cell["device"]["kind"]
        self.cuda = self.device == "cuda"
        self.train = spec["mode"] == "train"
        self.precision = spec["precision"]
        self.batch = spec["batch"]
        amp = self.precision.startswith("amp-")
        tf32 = self.precision == "tf32"
        torch.backends.cuda.matmul.allow_tf32 = tf32
        torch.backends.cudnn.allow_tf32 = tf32
        torch.backends.cudnn.benchmark = True
        torch.backends.cudnn.benchmark_limit = 10
        torch.manual_seed(cell["seed"])
        name = spec["model"]
        tokens, self.detector = name == "gpt2_medium", name == "fasterrcnn_resnet50_fpn"
        default = "1x1024" if tokens else "800x1333" if self.detector else "224x224"
        size = [int(n) for n in (spec.get("image") or default).split("x")]
        if self.detector:
            model, self.layers = fasterrcnn_resnet50_fpn(size)
        else:
            model, self.layers = resnet50(torch) if name == "resnet50" else MODELS[name]()
        self.layout = (torch.contiguous_format if tokens or spec.get("layout") == "contiguous"
                       else torch.channels_last)
        self.model = model.to(self.device, memory_format=self.layout)
        self.model.train(self.train)
        self.data = [self.random_batch(tokens, *size) for _ in range(BATCHES)]
        self.autocast = {"device_type": self.device, "enabled": amp,
                         "dtype": torch.float16 if self.precision == "amp-fp16" else torch.bfloat16}
        if self.train:
            trained = [p for p in self.model.parameters() if p.requires_grad]
            self.optimizer = torch.optim.SGD(trained, lr=0.001, momentum=0.9,
                                             weight_decay=1e-4, fused=True)
            # Where the scaler skips the first step, which it does as soon as 65,536 times a gradient is too
            # large, the fused kernel leaves momenta as they were allocated, and no later step is finite.
            for parameter in trained:
                self.optimizer.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
            self.scaler = torch.amp.GradScaler(self.device, enabled=self.precision == "amp-fp16")
        self.graphs = None
        self.steps = 0

    def random_batch(self, tokens, height, width):
        torch = self.torch
        if tokens:
            drawn = torch.randint(50257, (self.batch, width + 1), device=self.device)
            return drawn[:, :-1].contiguous(), drawn[:, 1:].contiguous()
        images = torch.randn(self.batch, 3, height, width, device=self.device)
        images = images.to(memory_format=self.layout)
        if self.detector:
            return list(images), [self.random_target(height, width) for _ in range(self.batch)]
        return images, torch.randint(1000, (self.batch,), device=self.device)

    def random_target(self, height, width):
        """Eight boxes, their sides a tenth to a half of the image's."""
        torch = self.torch
        side = torch.rand(8, 2, device=self.device) * 0.4 + 0.1
        corner = torch.rand(8, 2, device=self.device) * (1 - side)
        size = torch.tensor([width, height] * 2, device=self.device)
        return {"boxes": torch.cat([corner, corner + side], 1) * size,
                "labels": torch.randint(1, 91, (8,), device=self.device)}

    def loss(self, images, labels):
        if self.detector:
            return sum(self.model(images, labels).values())
        logits = self.model(images)
        return self.torch.nn.functional.cross_entropy(logits.flatten(0, -2), labels.flatten())

    def run(self, images, labels):
        torch = self.torch
        if not self.train:
            with torch.inference_mode(), torch.autocast(**self.autocast):
                output = self.model(images)
                return output[-1]["scores"] if self.detector else output
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast(**self.autocast):
            loss = self.loss(images, labels)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss

    def step(self):
        place = self.steps % BATCHES
        self.steps += 1
        if self.graphs is None:
            return self.run(*self.data[place])
        self.graphs[place][0].replay()
        return self.graphs[place][1]

    def prime(self, lane):
        """The first steps, which search for algorithms, and the recording."""
        torch = self.torch
        if lane == "eager":
            for _ in range(3):
                self.step()
            return
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.step()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        if self.train:
            self.optimizer.zero_grad(set_to_none=True)
        torch.cuda.empty_cache()
        graphs, pool = [], None
        for images, labels in self.data:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool):
                output = self.run(images, labels)
            pool = graph.pool()
            graphs.append((graph, output))
        self.graphs, self.steps = graphs, 0

    def window(self, seconds):
        """Steps for so long: their number, and the time by the device's clock and by the host's."""
        torch = self.torch
        if self.cuda:
            torch.cuda.synchronize()
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start, steps = time.monotonic(), 0
        if self.cuda:
            begin.record()
        while time.monotonic() - start < seconds:
            output = self.step()
            steps += 1
        if self.cuda:
            end.record()
            torch.cuda.synchronize()
        host = time.monotonic() - start
        return steps, begin.elapsed_time(end) / 1e3 if self.cuda else host, host, output

    def warm_up(self, stop):
        start = time.monotonic()
        least = min(2.0, stop["min_seconds"])
        means = []
        while time.monotonic() - start < max(stop["max_seconds"], least):
            steps, seconds, _, _ = self.window(min(0.5, least / 4))
            means = (means + [seconds / steps])[-3:]
            if time.monotonic() - start >= least and len(means) == 3 and (
                    max(means) - min(means) <= 0.02 * statistics.median(means)):
                break
        return time.monotonic() - start


def main():
    cell = json.load(sys.stdin)
    start = time.monotonic()
    import torch
    load = time.monotonic() - start
    side = Side(torch, cell)
    side.prime(cell["spec"]["lane"])
    primed = time.monotonic() - start
    warm = side.warm_up(cell["spec"]["stop"])
    steps, seconds, host, output = side.window(cell["spec"]["stop"]["max_seconds"])
    finite = bool(torch.isfinite(output).all())
    print(json.dumps({
        **({} if finite else {"error": "the loss is not finite"}),
        "throughput": steps * side.batch / seconds if finite else None, "steps": steps,
        "seconds": seconds, "host_seconds": host, "warmup_seconds": warm, "import_seconds": load,
        "ready_seconds": primed, "finite": finite, "layers": side.layers,
        "loss_scale": side.scaler.get_scale() if side.train and side.scaler.is_enabled() else None,
        "allocated_peak_bytes": torch.cuda.max_memory_allocated() if side.cuda else None,
        "torch": torch.__version__, "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version() if side.cuda else None,
        "device": torch.cuda.get_device_name() if side.cuda else "cpu"}))


if __name__ == "__main__":
    main()
