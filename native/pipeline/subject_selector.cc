#include "pipeline/subject_selector.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "core/scan.h"

namespace cutout {

namespace {

constexpr const char* kParts[] = {"image_embed", "high_res_feats_0", "high_res_feats_1"};
constexpr std::size_t kFinest = 1;  // of kParts
constexpr std::size_t kMasks = 3;   // that the decoder gives
constexpr float kNearlyAsLikely = 0.05F;
constexpr double kStability = 0.5;  // weights beside the predicted overlap
constexpr double kArea = 0.3;

bool is_fixed_map(const ort::Shape& shape) {
  return shape.size() == 4 && shape[0] == 1 &&
         std::ranges::all_of(shape, [](std::int64_t side) { return side > 0; });
}

constexpr const char* kNotFinite = "The selector's output holds values that are not finite.";

std::uint8_t sigmoid(float logit) {
  return static_cast<std::uint8_t>(std::lround(255.0F / (1.0F + std::exp(-logit))));
}

/// Whether a point is the whole prompt: then the candidates are a part, a larger part and all of
/// what is there, and how likely each is says little about which is meant.
bool is_one_point(std::span<const SelectorPoint> points) {
  const auto is_given = [](const SelectorPoint& point) { return point.label >= 0; };
  return std::ranges::count_if(points, is_given) == 1;
}

std::ptrdiff_t area_above(std::span<const float> mask, float logit) {
  return std::ranges::count_if(mask, [logit](float value) { return value > logit; });
}

std::span<const float> mask_of(std::span<const float> masks, std::size_t which) {
  const std::size_t size = masks.size() / kMasks;
  return masks.subspan(which * size, size);
}

/// The candidates from the largest to the smallest.
std::array<std::size_t, kMasks> by_area(std::span<const float> masks) {
  std::array<std::ptrdiff_t, kMasks> areas{};
  std::array<std::size_t, kMasks> order{};
  for (std::size_t i = 0; i < kMasks; ++i) {
    areas[i] = area_above(mask_of(masks, i), 0);
    order[i] = i;
  }
  std::ranges::stable_sort(order,
                           [&](std::size_t x, std::size_t y) { return areas[x] > areas[y]; });
  return order;
}

/// The largest candidate of those that are nearly as likely as the likeliest.
std::size_t likely(std::span<const float> masks, std::span<const float> scores) {
  const float least = *std::ranges::max_element(scores) - kNearlyAsLikely;
  const auto order = by_area(masks);
  return *std::ranges::find_if(order, [&](std::size_t i) { return scores[i] >= least; });
}

/// How much speaks for a mask as the whole of what a point shows: the predicted overlap, how little
/// the mask depends on the threshold of its logits, and its size, because the point is in its parts
/// too.
double worth(std::span<const float> mask, float score) {
  const auto share = [&](float logit) {
    return static_cast<double>(std::max<std::ptrdiff_t>(1, area_above(mask, logit))) /
           static_cast<double>(mask.size());
  };
  return static_cast<double>(score) + kStability * share(1) / share(-1) +
         kArea * std::log(share(0));
}

/// The point with the corners of the box around what is in a mask; the point alone for an empty
/// one.
std::vector<SelectorPoint> with_box(std::span<const SelectorPoint> points,
                                    std::span<const float> mask, int side) {
  std::vector<SelectorPoint> prompt;
  std::ranges::copy_if(points, std::back_inserter(prompt),
                       [](const SelectorPoint& point) { return point.label >= 0; });
  int left = side;
  int top = side;
  int right = 0;
  int bottom = 0;
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      if (mask[static_cast<std::size_t>(y) * static_cast<std::size_t>(side) +
               static_cast<std::size_t>(x)] <= 0)
        continue;
      left = std::min(left, x);
      right = std::max(right, x + 1);
      top = std::min(top, y);
      bottom = y + 1;
    }
  }
  if (right <= left) return prompt;
  const auto part = [side](int at) { return static_cast<float>(at) / static_cast<float>(side); };
  prompt.push_back({part(left), part(top), 2});
  prompt.push_back({part(right), part(bottom), 3});
  return prompt;
}

}  // namespace

/// The masks of one prompt.
struct SubjectSelector::Candidates {
  std::vector<float> masks;  // logits, one after the other
  std::array<float, kMasks> scores{};
};

Status SubjectSelector::open(const SelectorSpec& spec, int intra_op_threads,
                             std::shared_ptr<SubjectSelector>& selector) {
  const std::shared_ptr<SubjectSelector> opened(new SubjectSelector());
  opened->input_ = spec.input;
  CUTOUT_RETURN_IF_ERROR(
      ort::TensorNetwork::open(spec.encoder, spec.operators, intra_op_threads, opened->encoder_));
  CUTOUT_RETURN_IF_ERROR(
      ort::TensorNetwork::open(spec.decoder, "", intra_op_threads, opened->decoder_));
  for (const char* const part : kParts) {
    opened->shapes_.push_back(opened->encoder_->output_shape(part));
  }
  CUTOUT_RETURN_IF_ERROR(opened->check());
  opened->side_ = static_cast<int>(opened->shapes_[kFinest][2]);
  selector = opened;
  return {};
}

Status SubjectSelector::check() const {
  const ort::Shape image{1, 3, input_.height, input_.width};
  const bool encodes = encoder_->inputs() == 1 && encoder_->input_shape("image") == image &&
                       std::ranges::all_of(shapes_, is_fixed_map);
  bool decodes = encodes && decoder_->inputs() == 7;
  for (std::size_t i = 0; decodes && i < shapes_.size(); ++i) {
    decodes = decoder_->input_shape(kParts[i]) == shapes_[i];
  }
  for (const char* const name : {"point_coords", "point_labels", "mask_input", "has_mask_input"}) {
    decodes = decodes && !decoder_->input_shape(name).empty();
  }
  for (const char* const name : {"masks", "iou_predictions"}) {
    decodes = decodes && !decoder_->output_shape(name).empty();
  }
  const bool square = decodes && shapes_[kFinest][2] == shapes_[kFinest][3];
  if (square) return {};
  return {Code::kModel,
          "The two networks for subject points do not have the inputs and outputs that are needed, "
          "or not the same sizes."};
}

std::size_t SubjectSelector::embedding_size() const {
  std::size_t sum = 0;
  for (const ort::Shape& shape : shapes_) sum += ort::elements(shape);
  return sum;
}

std::vector<ort::Tensor> SubjectSelector::parts(std::span<float> embedding) const {
  std::vector<ort::Tensor> result;
  for (std::size_t i = 0; i < shapes_.size(); ++i) {
    const std::size_t count = ort::elements(shapes_[i]);
    result.push_back({kParts[i], embedding.first(count), shapes_[i]});
    embedding = embedding.subspan(count);
  }
  return result;
}

Status SubjectSelector::embed(ConstImageView pixels, const CancelToken& token, ThreadPool& pool,
                              std::vector<float>& embedding) const {
  const ort::Shape shape{1, 3, input_.height, input_.width};
  std::vector<float> image(ort::elements(shape));
  fill_network_input(pixels, input_, image.data(), pool);
  CUTOUT_RETURN_IF_ERROR(token.check());
  std::vector<float> values(embedding_size());
  const std::array inputs{ort::Tensor{"image", image, shape}};
  CUTOUT_RETURN_IF_ERROR(encoder_->run(inputs, parts(values), token));
  if (!all_finite(values)) return {Code::kModel, kNotFinite};
  embedding = std::move(values);
  return {};
}

Status SubjectSelector::decode(std::span<const float> embedding,
                               std::span<const SelectorPoint> points, const CancelToken& token,
                               Candidates& candidates) const {
  if (embedding.size() != embedding_size()) {
    return {Code::kBadInput, "The embedding is not one of the loaded selector."};
  }
  const auto count = static_cast<std::int64_t>(points.size());
  const auto side = static_cast<std::size_t>(side_);
  std::vector<float> coordinates;
  std::vector<float> labels;
  for (const SelectorPoint& point : points) {
    coordinates.push_back(point.x * static_cast<float>(input_.width));
    coordinates.push_back(point.y * static_cast<float>(input_.height));
    labels.push_back(point.label);
  }
  std::vector<float> earlier(side * side);
  std::array<float, 1> has_earlier{0};
  // Inputs are only read.
  std::vector<ort::Tensor> inputs = parts({const_cast<float*>(embedding.data()), embedding.size()});
  inputs.push_back({"point_coords", coordinates, {1, count, 2}});
  inputs.push_back({"point_labels", labels, {1, count}});
  inputs.push_back({"mask_input", earlier, {1, 1, side_, side_}});
  inputs.push_back({"has_mask_input", has_earlier, {1}});
  std::vector<float>& masks = candidates.masks;
  std::array<float, kMasks>& scores = candidates.scores;
  masks.resize(kMasks * side * side);
  const std::array outputs{
      ort::Tensor{"masks", masks, {1, static_cast<std::int64_t>(kMasks), side_, side_}},
      ort::Tensor{"iou_predictions", scores, {1, static_cast<std::int64_t>(kMasks)}}};
  CUTOUT_RETURN_IF_ERROR(decoder_->run(inputs, outputs, token));
  if (!all_finite(masks) || !all_finite(scores)) return {Code::kModel, kNotFinite};
  return {};
}

Status SubjectSelector::decode_whole(std::span<const float> embedding,
                                     std::span<const SelectorPoint> points,
                                     const CancelToken& token, Candidates& candidates,
                                     std::size_t& which) const {
  const Candidates first = candidates;
  double best = -std::numeric_limits<double>::infinity();
  for (std::size_t part = 0; part < kMasks; ++part) {
    const std::vector<SelectorPoint> prompt = with_box(points, mask_of(first.masks, part), side_);
    if (prompt.size() == 1) continue;
    Candidates again;
    CUTOUT_RETURN_IF_ERROR(decode(embedding, prompt, token, again));
    bool better = false;
    for (std::size_t i = 0; i < kMasks; ++i) {
      const double value = worth(mask_of(again.masks, i), again.scores[i]);
      if (value <= best) continue;
      best = value;
      which = i;
      better = true;
    }
    if (better) candidates = std::move(again);
  }
  return {};
}

Status SubjectSelector::select(std::span<const float> embedding,
                               std::span<const SelectorPoint> points, const CancelToken& token,
                               Selection& selection) const {
  Candidates candidates;
  CUTOUT_RETURN_IF_ERROR(decode(embedding, points, token, candidates));
  std::size_t which = likely(candidates.masks, candidates.scores);
  if (is_one_point(points)) {
    CUTOUT_RETURN_IF_ERROR(decode_whole(embedding, points, token, candidates, which));
  }
  selection.score = candidates.scores[which];
  selection.side = side_;
  const std::span<const float> mask = mask_of(candidates.masks, which);
  selection.mask.resize(mask.size());
  std::ranges::transform(mask, selection.mask.begin(), sigmoid);
  return {};
}

}  // namespace cutout
