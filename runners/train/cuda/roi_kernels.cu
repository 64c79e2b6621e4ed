#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "runners/train/cuda/roi_kernels.h"
#include "runners/train/models/detection/roi_sampling.h"

namespace assay::train {
namespace {

constexpr int kThreads = 256;
constexpr int kWordBits = 64;

__device__ float Load(const float* p) { return *p; }
__device__ float Load(const __half* p) { return __half2float(*p); }
__device__ float Load(const __nv_bfloat16* p) { return __bfloat162float(*p); }
__device__ void Store(float* p, float value) { *p = value; }
__device__ void Store(__half* p, float value) { *p = __float2half(value); }
__device__ void Store(__nv_bfloat16* p, float value) { *p = __float2bfloat16(value); }

// Element `i` of the output; neighbouring threads have neighbouring addresses of the features:
// channels where they lie last, else columns.
struct OutputPlace {
  int64_t roi;
  int channel, row, column;
  int64_t offset;
};

__device__ OutputPlace PlaceOf(const RoiPooling& p, int64_t i) {
  OutputPlace place;
  if (p.levels[0].channel_stride == 1) {
    place.channel = static_cast<int>(i % p.channels), i /= p.channels;
    place.column = static_cast<int>(i % p.size), i /= p.size;
    place.row = static_cast<int>(i % p.size), i /= p.size;
  } else {
    place.column = static_cast<int>(i % p.size), i /= p.size;
    place.row = static_cast<int>(i % p.size), i /= p.size;
    place.channel = static_cast<int>(i % p.channels), i /= p.channels;
  }
  place.roi = i;
  place.offset = ((i * p.channels + place.channel) * p.size + place.row) * p.size + place.column;
  return place;
}

// Calls `sample(offset of the image and channel, bilinear, level)` for each sample of an element.
template <typename Sample>
__device__ void ForEachSample(const RoiPooling& p, const OutputPlace& place, const Sample& sample) {
  const float* const roi = p.rois + 5 * place.roi;
  const RoiLevel& level = p.levels[p.level_of[place.roi]];
  const RoiGrid grid = GridOf(roi, level.scale, p.size);
  const int64_t base =
      static_cast<int64_t>(roi[0]) * level.image_stride + place.channel * level.channel_stride;
  for (int i = 0; i < p.samples; ++i) {
    const float y = SampleAt(grid.top, grid.bin_height, place.row, i, p.samples);
    for (int j = 0; j < p.samples; ++j) {
      const float x = SampleAt(grid.left, grid.bin_width, place.column, j, p.samples);
      sample(base, BilinearAt(y, x, level.height, level.width), level);
    }
  }
}

__device__ int64_t At(const RoiLevel& level, int64_t base, int row, int column) {
  return base + row * level.row_stride + column * level.column_stride;
}

template <typename T>
__global__ void PoolKernel(const RoiPooling p, T* output, int64_t elements) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i >= elements) return;
  const OutputPlace place = PlaceOf(p, i);
  float sum = 0;
  ForEachSample(p, place, [&](int64_t base, const Bilinear& b, const RoiLevel& level) {
    const T* const map = static_cast<const T*>(level.features);
    sum += b.top_left * Load(map + At(level, base, b.top, b.left)) +
           b.top_right * Load(map + At(level, base, b.top, b.right)) +
           b.bottom_left * Load(map + At(level, base, b.bottom, b.left)) +
           b.bottom_right * Load(map + At(level, base, b.bottom, b.right));
  });
  Store(output + place.offset, sum / static_cast<float>(p.samples * p.samples));
}

template <typename T>
__global__ void PoolBackwardKernel(const RoiPooling p, const T* grad_output, int64_t elements) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i >= elements) return;
  const OutputPlace place = PlaceOf(p, i);
  const float value = Load(grad_output + place.offset) / static_cast<float>(p.samples * p.samples);
  ForEachSample(p, place, [&](int64_t base, const Bilinear& b, const RoiLevel& level) {
    atomicAdd(level.gradient + At(level, base, b.top, b.left), b.top_left * value);
    atomicAdd(level.gradient + At(level, base, b.top, b.right), b.top_right * value);
    atomicAdd(level.gradient + At(level, base, b.bottom, b.left), b.bottom_left * value);
    atomicAdd(level.gradient + At(level, base, b.bottom, b.right), b.bottom_right * value);
  });
}

// One word for each box and each 64 boxes: which of these it suppresses. Blocks above the diagonal
// alone, since a box suppresses only what comes behind it.
__global__ void OverlapKernel(const float* boxes, const int64_t* classes, int64_t count,
                              float threshold, uint64_t* mask) {
  const int64_t row = blockIdx.y, column = blockIdx.x, words = gridDim.x;
  if (column < row) return;
  __shared__ float other[kWordBits][4];
  __shared__ int64_t other_class[kWordBits];
  const int64_t first = column * kWordBits;
  const int width = static_cast<int>(count - first < kWordBits ? count - first : kWordBits);
  if (threadIdx.x < width) {
    for (int i = 0; i < 4; ++i) other[threadIdx.x][i] = boxes[4 * (first + threadIdx.x) + i];
    other_class[threadIdx.x] = classes[first + threadIdx.x];
  }
  __syncthreads();
  const int64_t box = row * kWordBits + threadIdx.x;
  if (box >= count) return;
  uint64_t word = 0;
  for (int j = row == column ? threadIdx.x + 1 : 0; j < width; ++j) {
    if (classes[box] == other_class[j] && OverlapOf(boxes + 4 * box, other[j]) > threshold) {
      word |= uint64_t{1} << j;
    }
  }
  mask[box * words + column] = word;
}

// One block: 64 boxes after 64 boxes, since whether a box counts depends on all before it.
__global__ void KeepKernel(const uint64_t* mask, int64_t count, int64_t words, bool* keep) {
  extern __shared__ uint64_t removed[];
  __shared__ uint64_t diagonal[kWordBits];
  __shared__ uint64_t kept;
  for (int64_t j = threadIdx.x; j < words; j += blockDim.x) removed[j] = 0;
  for (int64_t word = 0; word < words; ++word) {
    const int64_t first = word * kWordBits;
    const int width = static_cast<int>(count - first < kWordBits ? count - first : kWordBits);
    __syncthreads();
    if (threadIdx.x < width) {
      diagonal[threadIdx.x] = mask[(first + threadIdx.x) * words + word];
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      uint64_t gone = removed[word], stay = 0;
      for (int i = 0; i < width; ++i) {
        if ((gone >> i) & 1) continue;
        stay |= uint64_t{1} << i;
        gone |= diagonal[i];
      }
      kept = stay;
    }
    __syncthreads();
    if (threadIdx.x < width) keep[first + threadIdx.x] = (kept >> threadIdx.x) & 1;
    for (int64_t j = word + 1 + threadIdx.x; j < words; j += blockDim.x) {
      uint64_t gone = removed[j];
      for (int i = 0; i < width; ++i) {
        if ((kept >> i) & 1) gone |= mask[(first + i) * words + j];
      }
      removed[j] = gone;
    }
  }
}

int64_t ElementsOf(const RoiPooling& p) { return p.count * p.channels * p.size * p.size; }
unsigned BlocksOf(int64_t elements) {
  return static_cast<unsigned>((elements + kThreads - 1) / kThreads);
}

}  // namespace

cudaError_t PoolRois(const RoiPooling& p, RoiType type, void* output, cudaStream_t stream) {
  const int64_t elements = ElementsOf(p);
  if (elements == 0) return cudaSuccess;
  const unsigned blocks = BlocksOf(elements);
  if (type == RoiType::kHalf) {
    PoolKernel<<<blocks, kThreads, 0, stream>>>(p, static_cast<__half*>(output), elements);
  } else if (type == RoiType::kBfloat16) {
    PoolKernel<<<blocks, kThreads, 0, stream>>>(p, static_cast<__nv_bfloat16*>(output), elements);
  } else {
    PoolKernel<<<blocks, kThreads, 0, stream>>>(p, static_cast<float*>(output), elements);
  }
  return cudaGetLastError();
}

cudaError_t PoolRoisBackward(const RoiPooling& p, RoiType type, const void* grad_output,
                             cudaStream_t stream) {
  const int64_t elements = ElementsOf(p);
  if (elements == 0) return cudaSuccess;
  const unsigned blocks = BlocksOf(elements);
  if (type == RoiType::kHalf) {
    PoolBackwardKernel<<<blocks, kThreads, 0, stream>>>(p, static_cast<const __half*>(grad_output),
                                                        elements);
  } else if (type == RoiType::kBfloat16) {
    PoolBackwardKernel<<<blocks, kThreads, 0, stream>>>(
        p, static_cast<const __nv_bfloat16*>(grad_output), elements);
  } else {
    PoolBackwardKernel<<<blocks, kThreads, 0, stream>>>(p, static_cast<const float*>(grad_output),
                                                        elements);
  }
  return cudaGetLastError();
}

cudaError_t SuppressSorted(const float* boxes, const int64_t* classes, int64_t count,
                           float threshold, uint64_t* scratch, bool* keep, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  const int64_t words = (count + kWordBits - 1) / kWordBits;
  const unsigned side = static_cast<unsigned>(words);
  OverlapKernel<<<dim3(side, side), kWordBits, 0, stream>>>(boxes, classes, count, threshold,
                                                            scratch);
  KeepKernel<<<1, kThreads, static_cast<size_t>(words) * sizeof(uint64_t), stream>>>(scratch, count,
                                                                                     words, keep);
  return cudaGetLastError();
}

}  // namespace assay::train
