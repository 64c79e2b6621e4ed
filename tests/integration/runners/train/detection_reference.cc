// Runs the parts of Faster R-CNN on tensors that detection_test.py left in a folder, and writes
// back what came of it.
//
//   detection_reference ops DIR      in/{f0..f3, rois, levels, grad, boxes, scores, classes}
//   detection_reference model DIR N HEIGHT WIDTH
//
// `in/shapes` gives the ops' sizes as int64. The model reads in/<name> for each parameter and
// buffer, in/images, and in/boxes, in/labels of N images with two boxes each.
#include <ATen/ATen.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "runners/train/models/detection/faster_rcnn.h"
#include "runners/train/models/detection/roi_ops.h"
#include "runners/train/precision/precision.h"
#include "tests/integration/runners/train/raw_tensors.h"

namespace assay::train {
namespace {

constexpr int64_t kBoxesAnImage = 2;

void RunOps(const std::string& dir) {
  at::Tensor shapes = at::empty({5}, at::kLong);  // rois, boxes, channels, finest height and width
  ReadInto(dir + "/in/shapes", shapes);
  const auto size = [&](int i) { return shapes[i].item<int64_t>(); };
  const auto read = [&](const std::string& name, at::IntArrayRef shape, at::ScalarType type) {
    at::Tensor value = at::empty(shape, type);
    ReadInto(dir + "/in/" + name, value);
    return value;
  };
  Pyramid pyramid;
  for (int i = 0; i < kPyramidLevels; ++i) {
    pyramid.features[i] =
        read("f" + std::to_string(i), {2, size(2), size(3) >> i, size(4) >> i}, at::kFloat)
            .contiguous(at::MemoryFormat::ChannelsLast)
            .requires_grad_();
    pyramid.scales[i] = 0.25 / static_cast<double>(1 << i);
  }
  const at::Tensor pooled = PoolRegions(pyramid, read("rois", {size(0), 5}, at::kFloat),
                                        read("levels", {size(0)}, at::kLong));
  Write(dir + "/out/pooled", pooled);
  pooled.backward(read("grad", pooled.sizes(), at::kFloat));
  for (int i = 0; i < kPyramidLevels; ++i) {
    Write(dir + "/out/grad" + std::to_string(i), pyramid.features[i].grad());
  }
  const at::Tensor boxes = read("boxes", {size(1), 4}, at::kFloat);
  const at::Tensor scores = read("scores", {size(1)}, at::kFloat);
  const at::Tensor classes = read("classes", {size(1)}, at::kLong);
  Write(dir + "/out/kept", SuppressNonMaxima(boxes, scores, classes, 0.5));
  Write(dir + "/out/kept_of_one_class",
        SuppressNonMaxima(boxes, scores, at::zeros_like(classes), 0.5));
}

void Load(const std::string& dir, Model& model) {
  for (NamedTensor& t : model.tensors().parameters()) ReadInto(dir + "/in/" + t.name, t.tensor);
  for (NamedTensor& t : model.tensors().buffers()) ReadInto(dir + "/in/" + t.name, t.tensor);
}

void RunModel(const std::string& dir, int64_t n, int64_t height, int64_t width) {
  SetMath(Precision::kFp32);
  at::Tensor images = at::empty({n, 3, height, width}, at::kFloat, c10::MemoryFormat::ChannelsLast);
  ReadInto(dir + "/in/images", images);
  at::Tensor boxes = at::empty({n, kBoxesAnImage, 4}, at::kFloat);
  at::Tensor labels = at::empty({n, kBoxesAnImage}, at::kLong);
  ReadInto(dir + "/in/boxes", boxes);
  ReadInto(dir + "/in/labels", labels);
  {
    Placement placement;
    placement.train = false;
    FasterRcnn model(placement);
    Load(dir, model);
    const at::NoGradGuard no_grad;
    const std::vector<Detections> found = model.Detect(images);
    for (int64_t i = 0; i < n; ++i) {
      const std::string place = dir + "/out/" + std::to_string(i);
      Write(place + ".boxes", found[i].boxes);
      Write(place + ".scores", found[i].scores);
      Write(place + ".labels", found[i].labels);
    }
    for (const auto& [name, value] : model.Figures())
      std::printf("%s %.17g\n", name.c_str(), value);
  }
  FasterRcnn model({}, /*sample_at_random=*/false);
  Load(dir, model);
  std::printf("parameters %lld\n", static_cast<long long>(model.ParameterCount()));
  std::vector<DetectionTarget> targets;
  for (int64_t i = 0; i < n; ++i) targets.push_back({boxes[i], labels[i]});
  const at::Tensor loss = model.LossOf(images, targets);
  Write(dir + "/out/loss", loss);
  loss.backward();
  for (const NamedTensor& t : model.tensors().parameters()) {
    Write(dir + "/out/grad." + t.name, t.tensor.grad());
  }
}

}  // namespace
}  // namespace assay::train

int main(int argc, char** argv) {
  try {
    if (argc == 3 && std::strcmp(argv[1], "ops") == 0) {
      assay::train::RunOps(argv[2]);
    } else if (argc == 6 && std::strcmp(argv[1], "model") == 0) {
      assay::train::RunModel(argv[2], std::atoi(argv[3]), std::atoi(argv[4]), std::atoi(argv[5]));
    } else {
      std::fprintf(stderr, "usage: detection_reference ops DIR | model DIR N HEIGHT WIDTH\n");
      return 2;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "detection_reference: %s\n", error.what());
    return 1;
  }
  return 0;
}
