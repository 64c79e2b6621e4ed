"""Faster R-CNN here against TorchVision's, in fp32 on the CPU: ROI align and its gradient,
non-maximum suppression, and the whole model on the same weights: parameters, losses, gradients,
proposals and detections. Sampling takes the first of each kind on both sides.

Needs the same packages as reference_test.py, and skips (77) without them.
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
# Of the norm. Sums run in another order, through fifty layers.
# Seen: 1.2e-6 in the worst gradient.
OPS_TOLERANCE, LOSS_TOLERANCE, GRADIENT_TOLERANCE = 1e-5, 1e-5, 1e-4
# Not a multiple of 32, so that padding takes part.
IMAGES, HEIGHT, WIDTH = 2, 72, 100

if REFERENCE.is_dir() and os.environ.get("ASSAY_REFERENCE_READY") != "1":
    # Libraries are found by the loader's path, which is read when a process starts.
    environment = {**os.environ, "ASSAY_REFERENCE_READY": "1",
                   "PYTHONPATH": str(REFERENCE / "site"),
                   "LD_LIBRARY_PATH": f"{REFERENCE}/stub:{REFERENCE}/site/nvidia/cu13/lib"}
    os.execve(sys.executable, [sys.executable, *sys.argv], environment)
try:
    import torch
    import torchvision
    from torchvision.models.detection import faster_rcnn
    from torchvision.models.detection.backbone_utils import resnet_fpn_backbone
except ImportError as error:
    print(f"skipped: no torch and torchvision to compare with ({error}); "
          "python3 cmake/fetch_reference.py fetches them")
    sys.exit(77)


def relative(ours, theirs):
    return float((ours - theirs).norm() / theirs.norm().clamp_min(1e-12))


def program(*words):
    done = subprocess.run([str(BUILD / "tests" / "detection_reference"), *map(str, words)],
                          capture_output=True, text=True,
                          env={k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"})
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return dict(line.split() for line in done.stdout.splitlines())


def write(path, **tensors):
    for name, tensor in tensors.items():
        tensor.detach().contiguous().numpy().tofile(path / "in" / name)


def read(path, name, shape=None, dtype=torch.float32):
    file = path / "out" / name
    count = file.stat().st_size // torch.empty((), dtype=dtype).element_size()
    flat = torch.from_file(str(file), size=count, dtype=dtype) if count else torch.empty(0, dtype=dtype)
    return flat.reshape(shape) if shape is not None else flat


def folder(case):
    held = tempfile.TemporaryDirectory()
    case.addClassCleanup(held.cleanup)
    path = pathlib.Path(held.name)
    (path / "in").mkdir()
    (path / "out").mkdir()
    return path


def random_boxes(count, height, width):
    corner = torch.rand(count, 2) * torch.tensor([width, height]) * 0.9
    side = torch.rand(count, 2) ** 2 * torch.tensor([width, height]) * 0.7 + 0.5
    return torch.cat([corner, corner + side], 1)


class Operators(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.manual_seed(3)
        cls.path = path = folder(cls)
        rois, boxes, channels, height, width = 60, 400, 5, 40, 56
        features = {f"f{i}": torch.randn(2, channels, height >> i, width >> i, requires_grad=True)
                    for i in range(4)}
        cls.levels = torch.randint(4, (rois,))
        # Some reach beyond the image, some are smaller than a pixel of their map.
        cls.rois = torch.cat([torch.randint(2, (rois, 1)).float(),
                              random_boxes(rois, height * 4, width * 4) - 6], 1)
        grad = torch.randn(rois, channels, 7, 7)
        cls.boxes = random_boxes(boxes, 100, 100)
        cls.scores = torch.rand(boxes).mul(50).floor() / 50  # with ties
        cls.classes = torch.randint(3, (boxes,))
        write(path, shapes=torch.tensor([rois, boxes, channels, height, width]), rois=cls.rois,
              levels=cls.levels, grad=grad, boxes=cls.boxes, scores=cls.scores, classes=cls.classes,
              **features)
        cls.features = list(features.values())
        pooled = torch.zeros(rois, channels, 7, 7)
        for level, feature in enumerate(cls.features):
            chosen = torch.where(cls.levels == level)[0]
            pooled = pooled.index_put((chosen,), torchvision.ops.roi_align(
                feature, cls.rois[chosen], 7, 0.25 / 2 ** level, 2))
        pooled.backward(grad)
        cls.pooled = pooled.detach()
        program("ops", path)

    def test_roi_align(self):
        ours = read(self.path, "pooled", self.pooled.shape)
        self.assertLess(relative(ours, self.pooled), OPS_TOLERANCE)

    def test_gradient_of_roi_align(self):
        for level, feature in enumerate(self.features):
            ours = read(self.path, f"grad{level}", feature.shape)
            self.assertLess(relative(ours, feature.grad), OPS_TOLERANCE)

    def test_suppression_keeps_the_same_boxes_in_the_same_order(self):
        theirs = torchvision.ops.nms(self.boxes, self.scores, 0.5)
        self.assertTrue(torch.equal(read(self.path, "kept_of_one_class", dtype=torch.int64), theirs))
        theirs = torchvision.ops.batched_nms(self.boxes, self.scores, self.classes, 0.5)
        self.assertTrue(torch.equal(read(self.path, "kept", dtype=torch.int64), theirs))


class Model(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.manual_seed(5)
        torch.set_num_threads(1)
        cls.path = path = folder(cls)
        backbone = resnet_fpn_backbone(backbone_name="resnet50", weights=None, trainable_layers=3)
        model = faster_rcnn.FasterRCNN(backbone, 91, min_size=HEIGHT, max_size=WIDTH)
        with torch.no_grad():
            for name, buffer in model.named_buffers():
                # The default ones and zeros would hide one taken for another; the weight of a branch
                # keeps the sum of the branches from growing without bound.
                if name.endswith("weight"):
                    buffer.mul_(0.3 if ".bn3." in name else 1).mul_(0.9 + 0.2 * torch.rand_like(buffer))
                elif name.endswith("running_var"):
                    buffer.mul_(0.8 + 0.4 * torch.rand_like(buffer))
                else:
                    buffer.add_(0.1 * torch.randn_like(buffer))
            # So that some classes pass the least score.
            model.roi_heads.box_predictor.cls_score.bias.add_(2 * torch.randn(91))
        images = torch.rand(IMAGES, 3, HEIGHT, WIDTH)
        boxes = torch.stack([random_boxes(2, HEIGHT, WIDTH).clamp(max=HEIGHT - 1) +
                             torch.tensor([0, 0, 20, 20.0]) for _ in range(IMAGES)])
        labels = torch.randint(1, 91, (IMAGES, 2))
        write(path, images=images, boxes=boxes, labels=labels, **model.state_dict())
        cls.figures = program("model", path, IMAGES, HEIGHT, WIDTH)

        cls.trained = [n for n, p in model.named_parameters() if p.requires_grad]
        cls.parameters = dict(model.named_parameters())
        model.eval()
        proposals = []
        model.rpn.register_forward_hook(lambda _, __, output: proposals.extend(output[0]))
        with torch.no_grad():
            cls.detections = model(list(images))
        cls.proposals = sum(len(p) for p in proposals) / IMAGES
        model.train()
        plain, torch.randperm = torch.randperm, lambda n, device=None: torch.arange(n, device=device)
        try:
            losses = model(list(images), [{"boxes": b, "labels": l} for b, l in zip(boxes, labels)])
        finally:
            torch.randperm = plain
        cls.loss = sum(losses.values())
        cls.loss.backward()

    def test_parameters(self):
        self.assertEqual(int(self.figures["parameters"]),
                         sum(self.parameters[n].numel() for n in self.trained))
        self.assertEqual(int(self.figures["parameters"]), 41532886)
        self.assertEqual(sum(p.numel() for p in self.parameters.values()), 41755286)

    def test_loss(self):
        ours = float(read(self.path, "loss"))
        self.assertAlmostEqual(ours / float(self.loss.detach()), 1, delta=LOSS_TOLERANCE)

    def test_gradients(self):
        for name in self.trained:
            theirs = self.parameters[name].grad
            self.assertLess(relative(read(self.path, "grad." + name, theirs.shape), theirs),
                            GRADIENT_TOLERANCE, name)

    def test_proposals_and_detections(self):
        self.assertEqual(float(self.figures["proposals_per_image"]), self.proposals)
        found = [len(d["scores"]) for d in self.detections]
        self.assertGreater(min(found), 0)
        self.assertEqual(float(self.figures["detections_per_image"]), sum(found) / IMAGES)
        for i, theirs in enumerate(self.detections):
            labels = read(self.path, f"{i}.labels", dtype=torch.int64)
            self.assertTrue(torch.equal(labels, theirs["labels"]))
            self.assertLess(relative(read(self.path, f"{i}.scores"), theirs["scores"]), 1e-4)
            self.assertLess(relative(read(self.path, f"{i}.boxes", (-1, 4)), theirs["boxes"]), 1e-4)


if __name__ == "__main__":
    unittest.main(verbosity=2)
