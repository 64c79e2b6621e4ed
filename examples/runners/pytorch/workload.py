"""What a step is: the models, the precisions and the lanes of this runner, with PyTorch."""

import collections
import importlib.util
import os
import time

from protocol import Unsupported

# By their names in catalog/workloads.yaml: (package, name there, default image, smallest image). What is
# not installed is not listed.
MODELS = {
    "resnet50": ("torchvision", "resnet50", (224, 224), 32),
    "resnext101_32x4d": ("timm", "resnext101_32x4d", (224, 224), 32),
    "se_resnext101_32x4d": ("timm", "seresnext101_32x4d", (224, 224), 32),
    "swin_l": ("timm", "swin_large_patch4_window7_224", (224, 224), 224),
}
PRECISIONS = ["fp32", "tf32", "amp-fp16", "amp-bf16"]
LANES = ["eager", "compile"]
LAYOUTS = ["channels-last", "contiguous"]
CLASSES = 1000
MOST_BATCHES = 8


def models():
    return [name for name, (package, *_) in MODELS.items() if importlib.util.find_spec(package)]


def image_of(spec):
    """(height, width), or Unsupported."""
    _, _, default, least = MODELS[spec["model"]]
    if not spec["image"]:
        return default
    parts = str(spec["image"]).split("x")
    if len(parts) != 2 or not all(part.isdigit() and least <= int(part) <= 16384 for part in parts):
        raise Unsupported("value_not_in_stack", f"image '{spec['image']}' is not HEIGHTxWIDTH, each from "
                                                f"{least} to 16384, for {spec['model']}")
    return tuple(int(part) for part in parts)


def refuse(cell):
    """Raises Unsupported for what this runner cannot do: before PyTorch is loaded, and before anything
    else could be run in its place."""
    spec, device = cell["spec"], cell["device"]["kind"]
    for key, known, reason in (("model", models(), "model_not_in_stack"),
                               ("mode", ["train", "infer"], "mode_not_in_stack"),
                               ("lane", LANES, "lane_not_in_stack"),
                               ("precision", PRECISIONS, "unsupported_precision"),
                               ("layout", LAYOUTS, "value_not_in_stack"),
                               ("data", ["synthetic"], "value_not_in_stack")):
        if spec[key] not in known:
            raise Unsupported(reason, f"this stack has no {key} '{spec[key]}'; it has {', '.join(known)}")
    if cell["world_size"] != 1:
        raise Unsupported("value_not_in_stack", "this stack runs on one GPU")
    if spec["batch"] == 0 or cell["trial_steps"]:
        raise Unsupported("value_not_in_stack", "this stack does not search for the largest batch")
    if device not in ("cpu", "cuda"):
        raise Unsupported("value_not_in_stack", f"this stack runs on no device of kind '{device}'")
    if device == "cpu" and spec["precision"] in ("tf32", "amp-fp16"):
        raise Unsupported("unsupported_precision", f"a CPU has no {spec['precision']}")
    image_of(spec)


class CpuTimeline:
    """On a CPU a step is done when it returns."""

    def __init__(self):
        self._lengths, self._steps = collections.deque(), 0

    def begin(self):
        self._lengths.clear()
        self._steps = 0
        self._begin = self._last = time.perf_counter()

    def end_step(self):
        now = time.perf_counter()
        self._lengths.append(now - self._last)
        self._last = now
        self._steps += 1

    def pending(self):
        return len(self._lengths)

    def take(self):
        return self._lengths.popleft()

    def depth(self, _seconds):
        return 0

    def synchronize(self):
        pass

    def window(self):
        return self._last - self._begin

    def counted(self):
        return self._steps


class CudaTimeline:
    """Events behind each step; the count is a number in the GPU's memory."""

    def __init__(self, torch):
        self._torch = torch
        self._count = torch.zeros((), dtype=torch.int64, device="cuda")

    def _mark(self):
        event = self._torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def begin(self):
        self._torch.cuda.synchronize()
        self._count.zero_()
        self._pending = collections.deque()
        self._first = self._read = self._mark()

    def end_step(self):
        self._count.add_(1)
        self._pending.append(self._mark())

    def pending(self):
        return len(self._pending)

    def take(self):
        event = self._pending.popleft()
        event.synchronize()
        seconds = self._read.elapsed_time(event) / 1e3
        self._read = event
        return seconds

    def depth(self, seconds):
        """A quarter of a second of work keeps the GPU busy and lets the host stop soon."""
        return min(32, max(2, int(0.25 / seconds))) if seconds > 0 else 2

    def synchronize(self):
        self._torch.cuda.synchronize()

    def window(self):
        return self._first.elapsed_time(self._read) / 1e3

    def counted(self):
        return int(self._count.item())


class Workload:
    """A model on its device with its data; step() does one optimizer step or one batch of inference."""

    def __init__(self, torch, cell):
        spec = cell["spec"]
        self.torch = torch
        self.cuda = cell["device"]["kind"] == "cuda"
        # The agent shows this process one GPU.
        self.device = torch.device("cuda" if self.cuda else "cpu")
        self.train = spec["mode"] == "train"
        self.amp = spec["precision"].startswith("amp-")
        self.dtype = torch.float16 if spec["precision"] == "amp-fp16" else torch.bfloat16
        self.accumulate = spec["accumulate"]
        self._check_card(spec["precision"])
        self._set_math(spec["precision"] == "tf32")
        torch.manual_seed(cell["seed"])
        layout = torch.channels_last if spec["layout"] == "channels-last" else torch.contiguous_format
        self.model = self.build(spec["model"]).to(self.device, memory_format=layout).train(self.train)
        self.parameters = sum(p.numel() for p in self.model.parameters())
        self._make_data(spec["batch"], image_of(spec), layout)
        if self.train:
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.001, momentum=0.9,
                                             weight_decay=1e-4, fused=True)
            # Where the scaler skips the very first step, the fused kernel would leave momenta as they
            # were allocated.
            for parameter in self.model.parameters():
                self.optimizer.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
            self.scaler = torch.amp.GradScaler(self.device.type,
                                               enabled=spec["precision"] == "amp-fp16")
        # The shapes never change: one compilation, in the priming steps.
        self.forward = torch.compile(self.model, dynamic=False) if spec["lane"] == "compile" else self.model
        self.count, self.output, self.first_loss = 0, None, None

    def timeline(self):
        return CudaTimeline(self.torch) if self.cuda else CpuTimeline()

    def _check_card(self, precision):
        if not self.cuda:
            return
        major, minor = self.torch.cuda.get_device_capability()
        least = {"tf32": (8, 0), "amp-bf16": (8, 0), "amp-fp16": (5, 3)}.get(precision, (0, 0))
        if (major, minor) < least:
            raise Unsupported("unsupported_precision", f"{precision} needs compute capability {least[0]}."
                                                       f"{least[1]}; this GPU has {major}.{minor}")

    def _set_math(self, tf32):
        backends = self.torch.backends
        backends.cuda.matmul.allow_tf32 = backends.cudnn.allow_tf32 = tf32
        backends.cudnn.benchmark = True
        backends.cudnn.benchmark_limit = 10
        backends.cuda.matmul.allow_fp16_reduced_precision_reduction = self.amp
        backends.cuda.matmul.allow_bf16_reduced_precision_reduction = self.amp

    def math(self):
        """As PyTorch reads it back."""
        backends, matmul = self.torch.backends, self.torch.backends.cuda.matmul
        return {"allow_tf32_matmul": matmul.allow_tf32, "allow_tf32_cudnn": backends.cudnn.allow_tf32,
                "cudnn_benchmark": backends.cudnn.benchmark,
                "cudnn_benchmark_limit": backends.cudnn.benchmark_limit or 0,
                "deterministic": self.torch.are_deterministic_algorithms_enabled(),
                "reduced_precision_reduction": matmul.allow_fp16_reduced_precision_reduction,
                "reduced_precision_reduction_bf16": matmul.allow_bf16_reduced_precision_reduction}

    @staticmethod
    def build(name):
        package, there, _, _ = MODELS[name]
        if package == "torchvision":
            import torchvision
            return torchvision.models.get_model(there, weights=None)
        import timm
        return timm.create_model(there, pretrained=False)

    def _make_data(self, batch, image, layout):
        """As many batches as take a quarter of the memory that they lie in: eight at most, one at
        least."""
        torch = self.torch
        sample = 3 * image[0] * image[1] * 4
        memory = torch.cuda.get_device_properties(0).total_memory if self.cuda else _host_memory()
        self.batches = max(1, min(MOST_BATCHES, int(memory / 4 / (batch * sample))))
        micro = batch // self.accumulate
        self.data = [[(torch.randn(micro, 3, *image, device=self.device).to(memory_format=layout),
                       torch.randint(CLASSES, (micro,), device=self.device))
                      for _ in range(self.accumulate)] for _ in range(self.batches)]

    def step(self):
        torch, data = self.torch, self.data[self.count % self.batches]
        self.count += 1
        autocast = torch.autocast(self.device.type, dtype=self.dtype, enabled=self.amp)
        if not self.train:
            with torch.inference_mode(), autocast:
                for images, _ in data:
                    self.output = self.forward(images)
            return
        self.optimizer.zero_grad(set_to_none=True)
        total = None
        for images, labels in data:
            with autocast:
                loss = torch.nn.functional.cross_entropy(self.forward(images), labels) / self.accumulate
            self.scaler.scale(loss).backward()
            total = loss.detach() if total is None else total + loss.detach()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.output = total
        if self.first_loss is None:
            self.first_loss = total

    def outcome(self):
        """(fields, finite): what only the end tells."""
        torch, fields = self.torch, {}
        finite = bool(torch.isfinite(self.output).all())
        if self.train:
            fields["loss_first"], fields["loss_last"] = float(self.first_loss), float(self.output)
            fields["loss_scale"] = self.scaler.get_scale() if self.scaler.is_enabled() else None
        if self.cuda:
            fields["allocated_peak_bytes"] = torch.cuda.max_memory_allocated()
            fields["reserved_peak_bytes"] = torch.cuda.max_memory_reserved()
        return fields, finite


def _host_memory():
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
