#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <span>

#include "core/image_view.h"
#include "core/network.h"
#include "core/status.h"
#include "core/tensor.h"
#include "image/network_input.h"
#include "matte/guide.h"
#include "matte/mask_constraint.h"
#include "matte/math/uncertainty.h"
#include "matte/pixels.h"
#include "matte/summary.h"
#include "pipeline/plan.h"

namespace cutout {

/// A network's prediction for an image, and what the network saw of it.
struct Prediction {
  TensorView probability;           // 0..1
  std::optional<TensorView> input;  // as fill_input wrote it; needed where input_is_guide()
  NetworkInput spec;                // of the input
  TrainedOn trained_on = TrainedOn::kMasks;
};

/// Whether refinement of a prediction of this size about a part of an image reads the network's
/// input: both have one size, which is at most the part's.
inline bool input_is_guide(const NetworkInput& input, int width, int height, const Box& part) {
  return width == input.width && height == input.height && width <= part.width &&
         height <= part.height;
}

/// The guide of a prediction about a part of an image, without its planes.
inline Guide guide_of(const Prediction& prediction, const Box& part) {
  const TensorView& p = prediction.probability;
  Guide guide;
  guide.width = std::min(p.width, part.width);
  guide.height = std::min(p.height, part.height);
  if (!input_is_guide(prediction.spec, p.width, p.height, part)) return guide;
  for (std::size_t c = 0; c < 3; ++c) {
    guide.scale[c] = prediction.spec.std[c] / 255.0F;
    guide.offset[c] = prediction.spec.mean[c] / 255.0F;
  }
  return guide;
}

/// What a network's output is whose values are not all finite.
inline Status not_finite_output() {
  return {Code::kModel, "The network's output holds values that are not finite numbers."};
}

/// A mask of an image of width x height pixels, of which a tensor shows a part.
struct PlacedMask {
  SubjectMask mask;
  int width = 0;
  int height = 0;
  Box view;  // the part
};

/// A job's image where its backend works on it: on the host the caller's pixels, on a device a copy
/// of them.
struct JobImage {
  explicit JobImage(ImageView given) : pixels(given) {}
  virtual ~JobImage() = default;

  ImageView pixels;  // the caller's, where the image comes back to; fewer after reduce()
};

/// A matte at the network's size that the image's pixels can be computed from; the seam between
/// solve and write. Borrows the image and the prediction that it was made from.
class SolvedMatte {
 public:
  virtual ~SolvedMatte() = default;

  /// Alpha at this size.
  [[nodiscard]] virtual TensorView alpha() const = 0;

  /// Multiplies the alpha of the image's part with the matte, replaces mixed colours by the
  /// foreground's, and makes everything outside `roi` transparent, in pixels of the part
  /// (matte/refine.h). The whole image is then in the caller's buffer; a
  /// reduced one at its front, in rows without padding. The summary is of the whole image. A device
  /// that stops working before the image comes back leaves the buffer as it was.
  virtual Status write(const Box& roi, HiddenColour hidden, MatteSummary& summary) const = 0;
};

/// Memory and kernels of the stages that make a matte (matte.h). Tensors are where placement()
/// says. What each kernel computes is defined by the header it refers to; on the host
/// (cpu_backend.h) it has those bytes, on a device (device_backend.h) the limits of
/// test/native/backend_contract.h.
///
/// A backend is one job's: its calls come one after the other, and tensors, images and mattes are
/// gone before it is. What upload() and fill_input() write can be used by others, such as a
/// network, when they return; what the other calls make, by the calls after them. Throws
/// std::bad_alloc when there is no memory on the host; kDeviceMemory when there is none on the
/// device, kDevice when that has stopped working. After an error no call of the same backend need
/// work.
class Backend {
 public:
  virtual ~Backend() = default;

  [[nodiscard]] virtual Placement placement() const = 0;

  /// A tensor with undefined values.
  virtual Status allocate(int planes, int height, int width, Tensor& tensor) = 0;
  /// Both have as many values.
  virtual Status upload(std::span<const float> values, const TensorView& tensor) = 0;
  virtual Status download(const TensorView& tensor, std::span<float> values) = 0;

  // prepare

  /// The pixels are borrowed until the image is destroyed; SolvedMatte::write changes them, and on
  /// the host reduce() too.
  virtual Status open_image(ImageView pixels, std::unique_ptr<JobImage>& image) = 0;
  /// image/network_input.h, of a part of the image; the tensor has the size of `spec`.
  virtual Status fill_input(const JobImage& image, const Box& part, const NetworkInput& spec,
                            const TensorView& input) = 0;

  // infer

  /// Has the network do with its next run of the slot what to_probability() of its output will ask
  /// for, where it can.
  virtual void expect_answer(Network&, int /*slot*/, NetworkOutput, const Box& /*area*/) {}
  /// A network's output as a probability of 0..1, in place: sigmoid for logits, then clamped; and
  /// how uncertain it is in an area (matte/uncertainty.h). kModel when a value is infinite or NaN.
  virtual Status to_probability(const TensorView& values, NetworkOutput output, const Box& area,
                                Uncertainty& uncertainty) = 0;

  // solve

  /// matte/component_filter.h, in place. With a mask, matte/mask_constraint.h before it; components
  /// that the mask marks are not removed.
  virtual Status filter_components(const TensorView& probability, const Box& area,
                                   const std::optional<PlacedMask>& mask) = 0;
  /// image/resample.h, in place.
  virtual Status reduce(JobImage& image, int width, int height) = 0;
  /// solve_matte of cpu_backend.h; the prediction is about a part of the image.
  virtual Status solve(JobImage& image, const Box& part, const Prediction& prediction,
                       std::unique_ptr<SolvedMatte>& solved) = 0;
};

}  // namespace cutout
