// Faster R-CNN with ResNet-50 and a feature pyramid (models/detection/).
#include "runners/train/models/detection/faster_rcnn.h"
#include "runners/train/models/registry.h"

namespace assay::train {

ModelEntry FasterRcnnEntry() {
  return {.name = "fasterrcnn_resnet50_fpn",
          .parameters = kFasterRcnnParameters,
          .sample_unit = "img",
          .image = {800, 1333},
          .least_image = {64, 64},
          .make = MakeFasterRcnn,
          .no_graph =
              "how many proposals and detections there are depends on the data, so that a "
              "step of fasterrcnn_resnet50_fpn waits for the device and cannot be recorded",
          .forward_flops = FasterRcnnForwardFlops,
          .train_flops = FasterRcnnTrainFlops};
}

}  // namespace assay::train
