#pragma once

#include "image/taps.h"
#include "stress/cuda/device.h"

namespace cutout::test {

/// Taps in the device's memory.
class DeviceTaps {
 public:
  DeviceTaps(const cuda::Table& table, const Taps& taps)
      : first_(table, taps.first),
        count_(table, taps.count),
        weights_(table, taps.weights),
        stride_(taps.stride),
        outputs_(taps.outputs()) {}
  [[nodiscard]] cuda::FilterTaps get() const {
    return {first_.data(), count_.data(), weights_.data(), stride_, outputs_};
  }

 private:
  Buffer<int> first_;
  Buffer<int> count_;
  Buffer<float> weights_;
  int stride_;
  int outputs_;
};

}  // namespace cutout::test
