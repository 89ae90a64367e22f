#include "classify/subject_head.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/scan.h"

namespace cutout {

namespace {

constexpr double kMaxScales = 8;

/// rows x inputs of 8-bit weights times a vector, plus bias.
std::vector<double> layer(std::span<const std::int8_t> weights, std::span<const float> scale,
                          std::span<const float> bias, std::span<const double> in) {
  std::vector<double> out(bias.size());
  for (std::size_t row = 0; row < out.size(); ++row) {
    const std::int8_t* const from = weights.data() + row * in.size();
    double sum = 0;
    for (std::size_t i = 0; i < in.size(); ++i) sum += static_cast<double>(from[i]) * in[i];
    out[row] = sum * static_cast<double>(scale[row]) + static_cast<double>(bias[row]);
  }
  return out;
}

}  // namespace

Status Head::make(HeadWeights weights, Head& head) {
  const HeadWeights& w = weights;
  const std::size_t rows = w.hidden == 0 ? kSubjectCount : w.hidden;
  const std::size_t last = w.hidden == 0 ? 0 : kSubjectCount;
  const bool fits = w.inputs > 0 && w.mean.size() == w.inputs && w.scale.size() == w.inputs &&
                    w.first.size() == rows * w.inputs && w.first_scale.size() == rows &&
                    w.first_bias.size() == rows && w.second.size() == last * w.hidden &&
                    w.second_scale.size() == last && w.second_bias.size() == last;
  const bool finite = all_finite(w.mean) && all_finite(w.scale) && all_finite(w.first_scale) &&
                      all_finite(w.first_bias) && all_finite(w.second_scale) &&
                      all_finite(w.second_bias) && w.temperature > 0 && w.threshold >= 0;
  if (!fits || !finite) {
    return {Code::kModel, "The weights of the subject types do not fit each other."};
  }
  head.weights_ = std::move(weights);
  return {};
}

Subject Head::apply(std::span<const float> features) const {
  const HeadWeights& w = weights_;
  std::vector<double> values(w.inputs);
  for (std::size_t i = 0; i < w.inputs; ++i) {
    const double scaled = (static_cast<double>(features[i]) - static_cast<double>(w.mean[i])) *
                          static_cast<double>(w.scale[i]);
    values[i] = std::clamp(scaled, -kMaxScales, kMaxScales);
  }
  std::vector<double> logits = layer(w.first, w.first_scale, w.first_bias, values);
  if (w.hidden > 0) {
    for (double& value : logits) value = std::max(value, 0.0);
    logits = layer(w.second, w.second_scale, w.second_bias, logits);
  }
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (double& logit : logits) {
    logit = std::exp((logit - most) / static_cast<double>(w.temperature));
    sum += logit;
  }
  Subject subject;
  for (std::size_t i = 0; i < kSubjectCount; ++i) {
    subject.probabilities[i] = static_cast<float>(logits[i] / sum);
  }
  const auto likeliest = static_cast<std::size_t>(
      std::max_element(subject.probabilities.begin(), subject.probabilities.end()) -
      subject.probabilities.begin());
  subject.type = subject.probabilities[likeliest] > w.threshold ? likeliest : kOther;
  return subject;
}

}  // namespace cutout
