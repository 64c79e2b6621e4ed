// Where ROI align reads: bilinear samples in the bins of a region, for processor and GPU alike. As
// TorchVision's roi_align with aligned=False; He et al., "Mask R-CNN" (2017), section 3.
//
// Thread rule: pure functions, any thread.
#ifndef ASSAY_RUNNERS_TRAIN_MODELS_DETECTION_ROI_SAMPLING_H_
#define ASSAY_RUNNERS_TRAIN_MODELS_DETECTION_ROI_SAMPLING_H_

#ifdef __CUDACC__
#define ASSAY_HOST_DEVICE __host__ __device__
#else
#define ASSAY_HOST_DEVICE
#endif

namespace assay::train {

// Bins of a region in pixels of a feature map.
struct RoiGrid {
  float top, left, bin_height, bin_width;
};

// `roi`: image index, x1, y1, x2, y2 in pixels of the image. At least one pixel of the feature map.
ASSAY_HOST_DEVICE inline RoiGrid GridOf(const float* roi, float scale, int size) {
  const float left = roi[1] * scale, top = roi[2] * scale;
  float width = roi[3] * scale - left, height = roi[4] * scale - top;
  width = width > 1.0f ? width : 1.0f;
  height = height > 1.0f ? height : 1.0f;
  return {top, left, height / static_cast<float>(size), width / static_cast<float>(size)};
}

// Four pixels and their weights; all weights are 0 more than a pixel outside of the map.
struct Bilinear {
  int top, left, bottom, right;
  float top_left, top_right, bottom_left, bottom_right;
};

ASSAY_HOST_DEVICE inline Bilinear BilinearAt(float y, float x, int height, int width) {
  if (y < -1.0f || y > static_cast<float>(height) || x < -1.0f || x > static_cast<float>(width)) {
    return {0, 0, 0, 0, 0.0f, 0.0f, 0.0f, 0.0f};
  }
  y = y > 0.0f ? y : 0.0f;
  x = x > 0.0f ? x : 0.0f;
  int top = static_cast<int>(y), left = static_cast<int>(x);
  int bottom = top + 1, right = left + 1;
  if (top >= height - 1) {
    bottom = top = height - 1;
    y = static_cast<float>(top);
  }
  if (left >= width - 1) {
    right = left = width - 1;
    x = static_cast<float>(left);
  }
  const float down = y - static_cast<float>(top), over = x - static_cast<float>(left);
  return {top,
          left,
          bottom,
          right,
          (1 - down) * (1 - over),
          (1 - down) * over,
          down * (1 - over),
          down * over};
}

// Place of a sample: `bin` and `sample` of `samples` along one side.
ASSAY_HOST_DEVICE inline float SampleAt(float begin, float bin_size, int bin, int sample,
                                        int samples) {
  return begin + static_cast<float>(bin) * bin_size +
         (static_cast<float>(sample) + 0.5f) * bin_size / static_cast<float>(samples);
}

// Intersection over union of two boxes x1, y1, x2, y2.
ASSAY_HOST_DEVICE inline float OverlapOf(const float* a, const float* b) {
  const float left = a[0] > b[0] ? a[0] : b[0], right = a[2] < b[2] ? a[2] : b[2];
  const float top = a[1] > b[1] ? a[1] : b[1], bottom = a[3] < b[3] ? a[3] : b[3];
  const float width = right > left ? right - left : 0.0f;
  const float height = bottom > top ? bottom - top : 0.0f;
  const float both = width * height;
  const float area_a = (a[2] - a[0]) * (a[3] - a[1]), area_b = (b[2] - b[0]) * (b[3] - b[1]);
  return both / (area_a + area_b - both);
}

}  // namespace assay::train

#endif  // ASSAY_RUNNERS_TRAIN_MODELS_DETECTION_ROI_SAMPLING_H_
