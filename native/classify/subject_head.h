#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace cutout {

/// Kinds of subject, in the order of the head's outputs; the names are those of the request field
/// `type` (src/engine/types.ts).
inline constexpr std::array<std::string_view, 7> kSubjectTypes{
    "person", "product", "animal", "car", "transportation", "graphic", "other"};
inline constexpr std::size_t kSubjectCount = kSubjectTypes.size();
inline constexpr std::size_t kOther = kSubjectCount - 1;

/// The subject's type by the head. The probabilities sum to 1 and are calibrated.
struct Subject {
  std::array<float, kSubjectCount> probabilities{};
  std::size_t type = kOther;  // the most probable one, `other` below the head's threshold
};

/// Weights of the head: normalised features, one hidden layer (ReLU) or none, softmax. The matrices
/// are 8-bit numbers with one scale for each row.
struct HeadWeights {
  std::size_t inputs = 0;
  std::size_t hidden = 0;           // 0: no hidden layer
  std::vector<float> mean;          // inputs; a feature becomes (value - mean) * scale
  std::vector<float> scale;         // inputs
  std::vector<std::int8_t> first;   // rows x inputs; rows: hidden, or kSubjectCount without
  std::vector<float> first_scale;   // rows
  std::vector<float> first_bias;    // rows
  std::vector<std::int8_t> second;  // kSubjectCount x hidden
  std::vector<float> second_scale;  // kSubjectCount
  std::vector<float> second_bias;   // kSubjectCount
  float temperature = 1;            // logits are divided by it
  float threshold = 0;              // minimum probability of a type other than `other`
};

/// A head whose weights were checked. Any number of threads may apply it at once.
///
/// | limit     |                                                                       |
/// |-----------|-----------------------------------------------------------------------|
/// | features  | finite; clamped to 8 scales around the mean                           |
/// | order     | sums have a fixed order, in double: the same bits on every processor   |
class Head {
 public:
  /// kModel when the lengths do not fit each other or a number is not finite.
  static Status make(HeadWeights weights, Head& head);

  [[nodiscard]] std::size_t inputs() const { return weights_.inputs; }
  [[nodiscard]] Subject apply(std::span<const float> features) const;

 private:
  HeadWeights weights_;
};

}  // namespace cutout
