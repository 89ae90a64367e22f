#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/cancel.h"
#include "core/image_view.h"
#include "core/status.h"
#include "core/thread_pool.h"
#include "image/network_input.h"
#include "ort/tensor_network.h"

namespace cutout {

/// Fields as in src/engine/types.ts.
struct SelectorSpec {
  std::string encoder;
  std::string decoder;
  std::string operators;  // of the encoder
  NetworkInput input;
};

/// A point of an image, as fractions of its sides.
struct SelectorPoint {
  float x = 0;
  float y = 0;
  float label = 0;  // of the network: 0 out, 1 in; 2, 3: first and last corner of a box; -1: no box
};

/// A mask of the whole image, and the network's own estimate of its overlap with the subject.
struct Selection {
  std::vector<std::uint8_t> mask;  // as SubjectMask
  int side = 0;
  float score = 0;
};

/// A pair of networks that find what points or a box show (SAM 2): the encoder runs once an image,
/// the decoder once a prompt.
///
/// | encoder | image [1, 3, h, w] -> image_embed, high_res_feats_0, high_res_feats_1 [1, n, h', w'],  |
/// |         | all of fixed size; together in this order they are the image's embedding              |
/// | decoder | those, point_coords [1, n, 2] in pixels of the encoder's input, point_labels [1, n],   |
/// |         | mask_input [1, 1, s, s] and has_mask_input [1], not used -> masks [1, 3, s, s], logits, |
/// |         | and iou_predictions [1, 3]; s is the side of high_res_feats_0                          |
/// | threads | any number of images and prompts at the same time                                      |
class SubjectSelector {
 public:
  /// kModel for files that are no such pair.
  static Status open(const SelectorSpec& spec, int intra_op_threads,
                     std::shared_ptr<SubjectSelector>& selector);

  /// Values of an embedding.
  [[nodiscard]] std::size_t embedding_size() const;

  /// Encodes an image of RGBA8. kModel when the network gives a value that is not finite.
  Status embed(ConstImageView pixels, const CancelToken& token, ThreadPool& pool,
               std::vector<float>& embedding) const;

  /// Selects, by several points or a box, the largest mask of those whose predicted overlap is
  /// within 0.05 of the highest. One point is decoded again with the box around each of its masks;
  /// of all masks the one with the largest p + s / 2 + 0.3 ln a counts, with p the predicted
  /// overlap, s the area above a logit of 1 over that above -1, and a the mask's share of the
  /// image. kBadInput for an embedding of another length, kModel when the network gives a value
  /// that is not finite.
  Status select(std::span<const float> embedding, std::span<const SelectorPoint> points,
                const CancelToken& token, Selection& selection) const;

 private:
  SubjectSelector() = default;

  struct Candidates;

  Status check() const;
  Status decode(std::span<const float> embedding, std::span<const SelectorPoint> points,
                const CancelToken& token, Candidates& candidates) const;
  /// Replaces the candidates of one point by those of the point with a box, and finds the best of
  /// them; changes nothing if all are empty.
  Status decode_whole(std::span<const float> embedding, std::span<const SelectorPoint> points,
                      const CancelToken& token, Candidates& candidates, std::size_t& which) const;
  /// The parts of an embedding, as outputs of the encoder and inputs of the decoder.
  [[nodiscard]] std::vector<ort::Tensor> parts(std::span<float> embedding) const;

  NetworkInput input_;
  std::unique_ptr<ort::TensorNetwork> encoder_;
  std::unique_ptr<ort::TensorNetwork> decoder_;
  std::vector<ort::Shape> shapes_;  // of the parts
  int side_ = 0;                    // of the masks
};

}  // namespace cutout
