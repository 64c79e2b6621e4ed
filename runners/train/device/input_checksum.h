// A checksum of what a step is given, cheap enough to be taken in every step of a window: words
// spread over the batch, each mixed with its place, so that another batch, or the same values in
// another order, is another checksum.
//
// The same on CPU and GPU. Mixing is the finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA
// 2014): two different batches agree by chance in one of 2^64 cases.
// Thread rule: pure, any thread.
#ifndef ASSAY_RUNNERS_TRAIN_DEVICE_INPUT_CHECKSUM_H_
#define ASSAY_RUNNERS_TRAIN_DEVICE_INPUT_CHECKSUM_H_

#include <cstdint>

#ifdef __CUDACC__
#define ASSAY_ON_DEVICE_TOO __host__ __device__
#else
#define ASSAY_ON_DEVICE_TOO
#endif

namespace assay::train {

// Words of a batch that are looked at; of a smaller one all.
inline constexpr int64_t kChecksumWords = 256;
// Checksums that are told apart in one window: twice what a source rotates.
inline constexpr int64_t kMostInputs = 16;

ASSAY_ON_DEVICE_TOO inline uint64_t MixedWord(uint32_t word, int64_t place) {
  uint64_t z = (static_cast<uint64_t>(place + 1) << 32 | word) + 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

// The share of places `first`, `first` + `stride`, ... in the checksum of `words` words; shares are
// combined by exclusive or.
ASSAY_ON_DEVICE_TOO inline uint64_t ChecksumShare(const uint32_t* input, int64_t words,
                                                  int64_t first, int64_t stride) {
  const int64_t looked_at = words < kChecksumWords ? words : kChecksumWords;
  uint64_t sum = 0;
  for (int64_t place = first; place < looked_at; place += stride) {
    sum ^= MixedWord(input[place * (words / looked_at)], place);
  }
  return sum;
}

// Notes a checksum in a list of `*seen` different ones, while there is room.
inline void NoteChecksum(uint64_t checksum, int64_t* seen, uint64_t* list) {
  for (int64_t i = 0; i < *seen; ++i) {
    if (list[i] == checksum) return;
  }
  if (*seen < kMostInputs) list[(*seen)++] = checksum;
}

}  // namespace assay::train

#endif  // ASSAY_RUNNERS_TRAIN_DEVICE_INPUT_CHECKSUM_H_
