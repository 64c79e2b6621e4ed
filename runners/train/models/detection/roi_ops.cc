#include "runners/train/models/detection/roi_ops.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <vector>

#include "runners/train/models/detection/roi_sampling.h"

namespace assay::train {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int kBins = kRoiSize * kRoiSize;

// Calls `sample(bin, bilinear)` for each sample of a region.
template <typename Sample>
void ForEachSample(const float* roi, float scale, int height, int width, const Sample& sample) {
  const RoiGrid grid = GridOf(roi, scale, kRoiSize);
  for (int bin = 0; bin < kBins; ++bin) {
    for (int i = 0; i < kRoiSamples * kRoiSamples; ++i) {
      const float y =
          SampleAt(grid.top, grid.bin_height, bin / kRoiSize, i / kRoiSamples, kRoiSamples);
      const float x =
          SampleAt(grid.left, grid.bin_width, bin % kRoiSize, i % kRoiSamples, kRoiSamples);
      sample(bin, BilinearAt(y, x, height, width));
    }
  }
}

constexpr float kShare = 1.0f / (kRoiSamples * kRoiSamples);

// On the processor with fp32 planes; other types come and go through copies.
void PoolOnCpu(const Pyramid& pyramid, const at::Tensor& rois, const at::Tensor& levels,
               at::Tensor& output) {
  std::array<at::Tensor, kPyramidLevels> planes;
  for (int i = 0; i < kPyramidLevels; ++i) {
    planes[i] = pyramid.features[i].detach().to(at::kFloat).contiguous();
  }
  const at::Tensor regions = rois.contiguous(), chosen = levels.contiguous();
  const int64_t channels = planes[0].size(1);
  float* const out = output.mutable_data_ptr<float>();
  at::parallel_for(0, rois.size(0), 1, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const float* roi = regions.const_data_ptr<float>() + 5 * k;
      const int64_t level = chosen.const_data_ptr<int64_t>()[k];
      const at::Tensor& map = planes[level];
      const int height = static_cast<int>(map.size(2)), width = static_cast<int>(map.size(3));
      const float* image =
          map.const_data_ptr<float>() + static_cast<int64_t>(roi[0]) * channels * height * width;
      float* values = out + k * channels * kBins;
      std::fill(values, values + channels * kBins, 0.0f);
      ForEachSample(roi, static_cast<float>(pyramid.scales[level]), height, width,
                    [&](int bin, const Bilinear& b) {
                      for (int64_t c = 0; c < channels; ++c) {
                        const float* plane = image + c * height * width;
                        values[c * kBins + bin] +=
                            kShare * (b.top_left * plane[b.top * width + b.left] +
                                      b.top_right * plane[b.top * width + b.right] +
                                      b.bottom_left * plane[b.bottom * width + b.left] +
                                      b.bottom_right * plane[b.bottom * width + b.right]);
                      }
                    });
    }
  });
}

// `gradients` are contiguous fp32 here. Each thread has channels of its own, so that none adds
// where another does.
void PoolBackwardOnCpu(const Pyramid& pyramid, const at::Tensor& rois, const at::Tensor& levels,
                       const at::Tensor& grad_output,
                       std::array<at::Tensor, kPyramidLevels>& gradients) {
  const at::Tensor regions = rois.contiguous(), chosen = levels.contiguous();
  const at::Tensor grads = grad_output.to(at::kFloat).contiguous();
  const int64_t channels = grads.size(1), count = rois.size(0);
  at::parallel_for(0, channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t k = 0; k < count; ++k) {
      const float* roi = regions.const_data_ptr<float>() + 5 * k;
      const int64_t level = chosen.const_data_ptr<int64_t>()[k];
      at::Tensor& map = gradients[level];
      const int height = static_cast<int>(map.size(2)), width = static_cast<int>(map.size(3));
      float* image =
          map.mutable_data_ptr<float>() + static_cast<int64_t>(roi[0]) * channels * height * width;
      const float* values = grads.const_data_ptr<float>() + k * channels * kBins;
      ForEachSample(roi, static_cast<float>(pyramid.scales[level]), height, width,
                    [&](int bin, const Bilinear& b) {
                      for (int64_t c = begin; c < end; ++c) {
                        float* plane = image + c * height * width;
                        const float value = kShare * values[c * kBins + bin];
                        plane[b.top * width + b.left] += b.top_left * value;
                        plane[b.top * width + b.right] += b.top_right * value;
                        plane[b.bottom * width + b.left] += b.bottom_left * value;
                        plane[b.bottom * width + b.right] += b.bottom_right * value;
                      }
                    });
    }
  });
}

at::Tensor PoolForward(const Pyramid& pyramid, const at::Tensor& rois, const at::Tensor& levels) {
  const at::Tensor& first = pyramid.features[0];
  const std::array<int64_t, 4> shape = {rois.size(0), first.size(1), kRoiSize, kRoiSize};
  if (first.is_cuda()) {
    at::Tensor output = at::empty(shape, first.options());
    cuda::PoolRegions(pyramid, rois, levels, output);
    return output;
  }
  at::Tensor output = at::empty(shape, first.options().dtype(at::kFloat));
  PoolOnCpu(pyramid, rois, levels, output);
  return output.to(first.scalar_type());
}

struct PoolFunction : torch::autograd::Function<PoolFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& f0, const at::Tensor& f1,
                            const at::Tensor& f2, const at::Tensor& f3, const at::Tensor& rois,
                            const at::Tensor& levels, const std::vector<double>& scales) {
    const Pyramid pyramid{{f0, f1, f2, f3}, {scales[0], scales[1], scales[2], scales[3]}};
    // Of the features only shape and layout are needed again; autograd holds them anyway.
    context->save_for_backward({f0, f1, f2, f3, rois, levels});
    context->saved_data["scales"] = scales;
    return PoolForward(pyramid, rois, levels);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const variable_list saved = context->get_saved_variables();
    const std::vector<double> scales = context->saved_data["scales"].toDoubleVector();
    const Pyramid pyramid{{saved[0], saved[1], saved[2], saved[3]},
                          {scales[0], scales[1], scales[2], scales[3]}};
    const bool cuda = saved[0].is_cuda();
    std::array<at::Tensor, kPyramidLevels> gradients;
    for (int i = 0; i < kPyramidLevels; ++i) {
      gradients[i] =
          at::zeros_like(saved[i], saved[i].options().dtype(at::kFloat),
                         cuda ? at::MemoryFormat::Preserve : at::MemoryFormat::Contiguous);
    }
    if (cuda) {
      assay::train::cuda::PoolRegionsBackward(pyramid, saved[4], saved[5], grads[0], gradients);
    } else {
      PoolBackwardOnCpu(pyramid, saved[4], saved[5], grads[0], gradients);
    }
    variable_list result;
    for (int i = 0; i < kPyramidLevels; ++i) {
      result.push_back(gradients[i].to(saved[i].scalar_type()));
    }
    result.resize(7);  // none for rois, levels and scales
    return result;
  }
};

at::Tensor KeepSortedOnCpu(const at::Tensor& boxes, const at::Tensor& classes, double threshold) {
  const int64_t count = boxes.size(0);
  at::Tensor keep = at::ones({count}, boxes.options().dtype(at::kBool));
  bool* const kept = keep.mutable_data_ptr<bool>();
  const float* const box = boxes.const_data_ptr<float>();
  const int64_t* const kind = classes.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < count; ++i) {
    if (!kept[i]) continue;
    for (int64_t j = i + 1; j < count; ++j) {
      if (kept[j] && kind[i] == kind[j] &&
          OverlapOf(box + 4 * i, box + 4 * j) > static_cast<float>(threshold)) {
        kept[j] = false;
      }
    }
  }
  return keep;
}

}  // namespace

at::Tensor PoolRegions(const Pyramid& pyramid, const at::Tensor& rois, const at::Tensor& levels) {
  const auto& f = pyramid.features;
  return PoolFunction::apply(f[0], f[1], f[2], f[3], rois, levels,
                             std::vector<double>(pyramid.scales.begin(), pyramid.scales.end()));
}

at::Tensor SuppressNonMaxima(const at::Tensor& boxes, const at::Tensor& scores,
                             const at::Tensor& classes, double threshold) {
  const auto [sorted, order] = at::sort(scores, /*stable=*/true, /*dim=*/0, /*descending=*/true);
  const at::Tensor in_order = boxes.index_select(0, order).contiguous();
  const at::Tensor kinds = classes.index_select(0, order).contiguous();
  const at::Tensor keep = boxes.is_cuda() ? cuda::KeepSorted(in_order, kinds, threshold)
                                          : KeepSortedOnCpu(in_order, kinds, threshold);
  return order.masked_select(keep.logical_and(sorted.ge(0)));
}

}  // namespace assay::train
