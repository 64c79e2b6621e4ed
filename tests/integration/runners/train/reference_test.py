"""Every model here against its reference in Python, on the same weights and inputs, in fp32 on the
CPU: number of parameters, output, loss, gradients, one step of SGD with momentum, running statistics.

  reference_test.py MODEL...     names of the registry, or of tests/unit/runners/train/shallow_models.h

Weights are made by the reference at test time, and none are downloaded; reference_steps reads them.
Needs the Python package torch of the LibTorch under test, torchvision, timm and transformers:
cmake/fetch_reference.py puts them, without the CUDA libraries that a CPU never calls, into
.deps/reference. Exit code 77 (skipped) without them.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import unittest

ROOT = pathlib.Path(__file__).resolve().parents[4]
BUILD = pathlib.Path(os.environ.get("ASSAY_BUILD", ROOT / "build/release"))
REFERENCE = pathlib.Path(os.environ.get("ASSAY_REFERENCE", ROOT / ".deps/reference"))
# Of the norm. Far below what fp32 itself is off by (TorchVision's resnet50 from its own fp64 9.5e-5 in the
# logits here and 2.0 % in the worst gradient, measured once), since both sides call the same kernels in
# the same order: most models are equal to the last bit, and a GELU by another formula would pass at 1e-4.
TOLERANCE = 1e-5
SEED = 11  # of each pass, for stochastic depth: kSeed of reference_steps.cc

if REFERENCE.is_dir() and os.environ.get("ASSAY_REFERENCE_READY") != "1":
    # Libraries are found by the loader's path, which is read when a process starts.
    environment = {**os.environ, "ASSAY_REFERENCE_READY": "1", "HF_HUB_OFFLINE": "1",
                   "PYTHONPATH": str(REFERENCE / "site"),
                   "LD_LIBRARY_PATH": f"{REFERENCE}/stub:{REFERENCE}/site/nvidia/cu13/lib"}
    os.execve(sys.executable, [sys.executable, *sys.argv], environment)
try:
    import timm
    import torch
    import torchvision
    import transformers
except ImportError as error:
    print(f"skipped: no torch, torchvision, timm and transformers to compare with ({error}); "
          "python3 cmake/fetch_reference.py fetches them")
    sys.exit(77)


def strides_moved(model):
    """ResNet v1 of TorchVision's v1.5: the stride of a block in its first convolution."""
    for module in model.modules():
        if isinstance(module, torchvision.models.resnet.Bottleneck):
            module.conv1.stride, module.conv2.stride = module.conv2.stride, (1, 1)
    return model


def resnext(**options):
    from timm.models.resnet import Bottleneck, ResNet
    return ResNet(Bottleneck, (1, 1, 2, 1), cardinality=32, base_width=4, **options)


def swin():
    from timm.models.swin_transformer import SwinTransformer
    return SwinTransformer(img_size=64, patch_size=4, window_size=2, embed_dim=32, depths=(2, 2, 2, 1),
                           num_heads=(1, 2, 4, 8), drop_path_rate=0.5)


def gpt2(**options):
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, **options))


CNN = (2, 3, 64, 64)
# The reference, the shape of a batch, trainable parameters (of a shallow model those of the reference).
MODELS = {
    "resnet50_v1": (lambda: strides_moved(torchvision.models.resnet50()), CNN, 25557032),
    "resnet50": (torchvision.models.resnet50, CNN, 25557032),
    "resnext101_32x4d": (lambda: timm.create_model("resnext101_32x4d"), CNN, 44177704),
    "se_resnext101_32x4d": (lambda: timm.create_model("seresnext101_32x4d"), CNN, 48955416),
    "swin_l": (lambda: timm.create_model("swin_large_patch4_window7_224"), (1, 3, 224, 224), 196532476),
    "gpt2_medium": (lambda: gpt2(n_embd=1024, n_layer=24, n_head=16), (1, 64), 354823168),
    "shallow_resnet_v1": (lambda: strides_moved(torchvision.models.ResNet(
        torchvision.models.resnet.Bottleneck, [1, 1, 2, 1])), CNN, None),
    "shallow_resnext": (resnext, CNN, None),
    "shallow_se_resnext": (lambda: resnext(block_args={"attn_layer": "se"}), CNN, None),
    "shallow_swin": (swin, CNN, None),
    "shallow_gpt2": (lambda: gpt2(n_embd=64, n_layer=3, n_head=4, n_positions=64, vocab_size=512),
                     (2, 64), None),
}


def relative(ours, theirs):
    return float((ours - theirs).norm() / theirs.norm().clamp_min(1e-12))


class Comparison:
    """What one model gives here and there."""

    def __init__(self, name, path):
        self.path = path
        make, shape, parameters = MODELS[name]
        (path / "in").mkdir(parents=True)
        (path / "out").mkdir()
        torch.manual_seed(7)
        torch.set_num_threads(1)
        self.model = make().train()
        with torch.no_grad():
            # The default ones and zeros would hide a swapped weight and bias, or one left out.
            for p in self.model.parameters():
                if p.ndim == 1:
                    p.add_(0.1 * torch.randn_like(p))
                # Transformers begin where a GELU is nearly a line and softmax nearly even.
                elif p.ndim == 2 and name.startswith("shallow"):
                    p.mul_(5)
        # Once, where one tensor has two names (GPT-2's last layer).
        self.parameters = dict(self.model.named_parameters())
        self.statistics = {n: b for n, b in self.model.named_buffers()
                           if n.endswith(("running_mean", "running_var"))}
        self.parameter_count = parameters or sum(p.numel() for p in self.parameters.values())
        self.images, self.labels = self.batch(shape)
        self.write({**self.parameters, **self.statistics, "images": self.images, "labels": self.labels})
        self.train_there(steps=2)
        height, width = shape[2:] if len(shape) == 4 else (1, shape[1])
        done = subprocess.run(
            [str(BUILD / "tests" / "reference_steps"), name, str(path), "2", str(shape[0]), f"{height}x{width}"],
            check=True, stdout=subprocess.PIPE, text=True,
            env={k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"})
        self.our_parameter_count = int(done.stdout)

    def batch(self, shape):
        if len(shape) == 4:
            return torch.randn(shape), torch.randint(1000, shape[:1])
        tokens = torch.randint(self.model.config.vocab_size, (shape[0], shape[1] + 1))
        return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()

    def write(self, tensors):
        for name, tensor in tensors.items():
            tensor.detach().contiguous().numpy().tofile(self.path / "in" / name)

    def logits(self, images):
        torch.manual_seed(SEED)
        return self.model(images) if images.ndim == 4 else self.model(images).logits

    def train_there(self, steps):
        images = self.images
        if images.ndim == 4:
            self.model = self.model.to(memory_format=torch.channels_last)
            images = images.to(memory_format=torch.channels_last)
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
        self.their_losses = []
        for step in range(steps):
            optimizer.zero_grad()
            logits = self.logits(images)
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, -2), self.labels.flatten())
            loss.backward()
            self.their_losses.append(loss.item())
            if step == 0:
                self.their_logits = logits.detach()
                self.their_gradients = {n: p.grad.contiguous().clone() for n, p in self.parameters.items()}
            optimizer.step()

    def ours(self, name, shape):
        flat = torch.from_file(str(self.path / "out" / name), size=torch.Size(shape).numel())
        return flat.reshape(shape)


class EqualsReference(unittest.TestCase):
    names = []

    def test_each(self):
        for name in self.names:
            with self.subTest(model=name), tempfile.TemporaryDirectory() as folder:
                self.compare(Comparison(name, pathlib.Path(folder) / name))

    def compare(self, model):
        self.assertEqual(model.our_parameter_count, model.parameter_count)
        self.assertEqual(sum(p.numel() for p in model.parameters.values()), model.parameter_count)
        shape = model.their_logits.shape
        off = {"logits": relative(model.ours("logits", shape), model.their_logits)}
        # The second is after one step of the optimizer.
        for i, (ours, theirs) in enumerate(zip(model.ours("losses", (2,)), model.their_losses)):
            self.assertAlmostEqual(float(ours) / theirs, 1, delta=1e-5, msg=f"loss {i}")
        for name, theirs in model.their_gradients.items():
            # A gradient that is nothing but rounding (a bias of keys, which softmax does not see) has no
            # digits to compare.
            ours = model.ours("grad." + name, theirs.shape)
            if theirs.abs().max() > 1e-7:
                off["gradient of " + name] = relative(ours, theirs)
        for name, theirs in {**model.parameters, **model.statistics}.items():
            off["after steps " + name] = relative(model.ours("after." + name, theirs.shape), theirs.detach())
        worst = max(off, key=off.get)
        print(f"{model.path.name}: of {len(off)} tensors {worst} is furthest off, by {off[worst]:.1e}")
        self.assertLess(off[worst], TOLERANCE, worst)


if __name__ == "__main__":
    EqualsReference.names = sys.argv[1:]
    if not set(EqualsReference.names) <= set(MODELS) or not EqualsReference.names:
        sys.exit(f"usage: reference_test.py MODEL..., of {', '.join(MODELS)}")
    unittest.main(argv=sys.argv[:1], verbosity=2)
