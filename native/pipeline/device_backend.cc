#include "pipeline/device_backend.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "cuda/kernels/colour_sampling.h"
#include "cuda/kernels/component_filter.h"
#include "cuda/kernels/deblur.h"
#include "cuda/kernels/foreground_colours.h"
#include "cuda/kernels/mask_constraint.h"
#include "image/taps.h"
#include "matte/cubic_taps.h"
#include "matte/deblur.h"
#include "matte/math/full_size.h"
#include "matte/math/uncertainty.h"

namespace cutout {

namespace {

using cuda::Table;

std::size_t area(int width, int height) {
  return static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
}

/// The caller's pixels and their copy on the device, in rows without padding.
struct DeviceImage final : JobImage {
  using JobImage::JobImage;

  /// The rows that the image comes back to.
  [[nodiscard]] HostRows rows() const {
    return {reinterpret_cast<std::byte*>(pixels.data), static_cast<std::size_t>(pixels.height),
            area(pixels.width, 4), pixels.stride};
  }
  [[nodiscard]] Box bounds() const { return {0, 0, device.width, device.height}; }

  cuda::Pixels device{};
  std::shared_ptr<void> memory;
};

cuda::Pixels part_of(const cuda::Pixels& pixels, const Box& part) {
  return {pixels.data + area(pixels.stride, part.top) + part.left, part.width, part.height,
          pixels.stride};
}

float* floats(const TensorView& tensor) { return static_cast<float*>(tensor.data); }

/// Values on the host as a row.
HostRows row_of(std::span<float> values) {
  return {reinterpret_cast<std::byte*>(values.data()), 1, values.size_bytes(), 0};
}

template <typename T>
ConstHostRows row_of(std::span<const T> values) {
  return {reinterpret_cast<const std::byte*>(values.data()), 1, values.size_bytes(), 0};
}

cuda::FilterTaps on_device(DeviceCall& call, const Taps& taps) {
  return {call.constant(taps.first), call.constant(taps.count), call.constant(taps.weights),
          taps.stride, taps.outputs()};
}

cuda::GuideTaps on_device(DeviceCall& call, const GuideAxis& axis, int outputs) {
  return {call.constant(axis.base),
          call.constant(axis.t),
          {call.constant(axis.spline[0]), call.constant(axis.spline[1]),
           call.constant(axis.spline[2]), call.constant(axis.spline[3])},
          outputs};
}

/// Where the network pixels of both axes lie in a mask; they outlive the call that uses them.
struct MaskAxes {
  struct Axis {
    std::vector<LinearTap> mask;
    std::vector<LinearTap> blocks;

    [[nodiscard]] cuda::MaskTaps on_device(DeviceCall& call) const {
      return {call.constant(mask), call.constant(blocks), static_cast<int>(mask.size())};
    }
  };

  MaskAxes(const PlacedMask& mask, int width, int height) {
    const BlockGrid grid(width, height);
    const Box& view = mask.view;
    rows = {mask_taps(view.top, view.height, mask.height, mask.mask.height, height),
            block_taps(height, grid.side, grid.rows)};
    columns = {mask_taps(view.left, view.width, mask.width, mask.mask.width, width),
               block_taps(width, grid.side, grid.columns)};
  }

  Axis rows;
  Axis columns;
};

/// Taps of both axes; they outlive the call that uses them.
struct BothTaps {
  Taps rows;
  Taps columns;
};

void fill_planes(DeviceCall& call, const cuda::Pixels& image, const BothTaps& taps,
                 const NetworkInput& spec, float* out) {
  cuda::Normalisation how{};
  for (std::size_t c = 0; c < 3; ++c) {
    how.mean[c] = spec.mean[c];
    how.scale[c] = 1.0F / spec.std[c];
  }
  const cuda::FilterTaps rows = on_device(call, taps.rows);
  const cuda::FilterTaps columns = on_device(call, taps.columns);
  float* const scratch = call.scratch<float>(4 * area(image.width, spec.height));
  call.run<&Table::network_input>(image, rows, columns, how, scratch, out);
}

/// `From`, `To`: what has a width and a height.
template <typename From, typename To>
BothTaps area_taps_between(const From& from, const To& to) {
  return {area_taps(from.height, to.height), area_taps(from.width, to.width)};
}

/// Edges at the guide's size, on the device: alpha, its confidence, models and colours of the
/// network pixels.
class DeviceMatte final : public SolvedMatte {
 public:
  DeviceMatte(Device& device, ThreadPool& pool, DeviceImage& image, const Box& part)
      : device_(device), pool_(pool), image_(image), part_(part) {}

  /// Refines a prediction: solve_matte of cpu_backend.h.
  Status solve(const Prediction& prediction) {
    const TensorView& p = prediction.probability;
    const Guide guide = guide_of(prediction, part_);
    const std::size_t size = guide.size();
    const NetworkInput spec{guide.width, guide.height, {0, 0, 0}, {255, 255, 255}};
    const bool guided_by_input = input_is_guide(prediction.spec, p.width, p.height, part_);
    const BothTaps taps = guided_by_input ? BothTaps{} : area_taps_between(part_, spec);
    const bool resized = guide.width != p.width || guide.height != p.height;
    const BothTaps output_taps = resized ? area_taps_between(p, guide) : BothTaps{};
    // One block for sampling, deblurring and colours, since each begins when the one before has
    // ended.
    const std::size_t levels = cuda::pyramid_size(guide.width, guide.height);
    const std::size_t most = std::max(cuda::colour_scratch(guide.width, guide.height),
                                      cuda::sampling_scratch(guide.width, guide.height));
    DeviceCall call(device_);
    auto* const scratch = call.scratch<std::byte>(
        std::max(cuda::deblur_scratch(guide.width, guide.height), (levels + most) * sizeof(float)));
    const bool has_samples = prediction.trained_on == TrainedOn::kMasks;
    float* const sampled = call.scratch<float>(has_samples ? 3 * size : size);
    float* const for_colours = call.scratch<float>(size);
    float* const values = guided_by_input ? floats(prediction.input.value())
                                          : call.allocate<float>(3 * size, guide_memory_);
    alpha_ = call.allocate<float>((2 + kPlaneChannels + 6) * size, memory_);
    if (alpha_ == nullptr) return call.finish();
    confidence_ = alpha_ + size;
    models_ = confidence_ + size;
    colours_ = models_ + kPlaneChannels * size;
    if (!guided_by_input) {
      fill_planes(call, part_of(image_.device, part_), taps, spec, values);
    }
    set_guide(values, guide);
    const float* output = floats(p);
    if (resized) {
      const cuda::FilterTaps rows = on_device(call, output_taps.rows);
      const cuda::FilterTaps columns = on_device(call, output_taps.columns);
      float* const lines = call.scratch<float>(area(p.width, guide.height));
      float* const at_size = call.scratch<float>(size);
      call.run<&Table::resize_plane>(output, p.width, rows, columns, lines, at_size);
      output = at_size;
    }
    auto* const pyramid = reinterpret_cast<float*>(scratch);
    cuda::SampledPlanes samples{output, sampled, sampled};  // none
    if (has_samples) {
      samples = {sampled, sampled + size, sampled + 2 * size};
      call.run<&Table::sample_colours>(guide_, output, pyramid, pyramid + levels, sampled);
    } else {
      call.clear(sampled, size * sizeof(float));
    }
    call.run<&Table::deblur>(guide_, output, samples, call.constant(blurs_by_slope()), scratch,
                             alpha_, confidence_, for_colours);
    call.run<&Table::local_models>(guide_, alpha_, models_);
    call.run<&Table::foreground_colours>(guide_, for_colours, pyramid, pyramid + levels, colours_);
    return call.finish();
  }

  [[nodiscard]] TensorView alpha() const override {
    return {alpha_, 1, guide_.height, guide_.width, Placement::kDevice};
  }

  Status write(const Box& roi, HiddenColour hidden, MatteSummary& summary) const override {
    const GuideAxis row_axis(guide_.height, part_.height);
    const GuideAxis column_axis(guide_.width, part_.width);
    Box in_image = clip(roi, ConstImageView{nullptr, part_.width, part_.height, 0});
    in_image.left += part_.left;
    in_image.top += part_.top;
    DeviceCall call(device_);
    const cuda::GuideTaps rows = on_device(call, row_axis, part_.height);
    const cuda::GuideTaps columns = on_device(call, column_axis, part_.width);
    float* const channels = call.scratch<float>(kChannels * area(guide_.width, guide_.height));
    call.run<&Table::full_size>(image_.device, part_, in_image, guide_, alpha_, confidence_,
                                models_, colours_, channels, rows, columns,
                                hidden == HiddenColour::kClear ? 0 : 0x00FFFFFFU);
    auto* const of_alpha = call.scratch<cuda::AlphaSummary>(1);
    call.run<&Table::summarise>(image_.device, image_.bounds(), of_alpha);
    const cuda::AlphaSummary* const found = call.fetch(of_alpha);
    call.download(image_.device.data, image_.rows(), pool_, &image_.changed);
    CUTOUT_RETURN_IF_ERROR(call.finish());
    const bool opaque = found->opaque == area(image_.device.width, image_.device.height);
    summary =
        Summary{found->left, found->top, found->right, found->bottom, found->foreground, opaque}
            .result();
    return {};
  }

 private:
  void set_guide(const float* values, const Guide& guide) {
    guide_.width = guide.width;
    guide_.height = guide.height;
    for (std::size_t c = 0; c < 3; ++c) {
      guide_.planes[c] = values + c * guide.size();
      guide_.scale[c] = guide.scale[c];
      guide_.offset[c] = guide.offset[c];
    }
  }

  Device& device_;
  ThreadPool& pool_;
  DeviceImage& image_;
  const Box part_;
  cuda::GuidePlanes guide_{};
  std::shared_ptr<void> guide_memory_;  // of its planes, where they are not the network's input
  std::shared_ptr<void> memory_;        // of what follows
  float* alpha_ = nullptr;
  float* confidence_ = nullptr;
  float* models_ = nullptr;
  float* colours_ = nullptr;
};

class DeviceBackend final : public Backend {
 public:
  DeviceBackend(Device& device, ThreadPool& pool) : device_(device), pool_(pool) {}

  [[nodiscard]] Placement placement() const override { return Placement::kDevice; }

  Status allocate(int planes, int height, int width, Tensor& tensor) override {
    tensor.view = {nullptr, planes, height, width, Placement::kDevice};
    CUTOUT_RETURN_IF_ERROR(device_.allocate(tensor.view.bytes(), tensor.memory));
    tensor.view.data = tensor.memory.get();
    return {};
  }

  Status upload(std::span<const float> values, const TensorView& tensor) override {
    DeviceCall call(device_);
    call.upload(row_of(values), tensor.data, pool_);
    return call.finish();
  }

  Status download(const TensorView& tensor, std::span<float> values) override {
    DeviceCall call(device_);
    call.download(tensor.data, row_of(values), pool_);
    return call.finish();
  }

  Status open_image(ImageView pixels, std::unique_ptr<JobImage>& image) override {
    auto opened = std::make_unique<DeviceImage>(pixels);
    DeviceCall call(device_);
    auto* const words =
        call.allocate<std::uint32_t>(area(pixels.width, pixels.height), opened->memory);
    opened->device = {words, pixels.width, pixels.height, pixels.width};
    call.upload(opened->rows(), words, pool_);
    CUTOUT_RETURN_IF_ERROR(call.finish());
    image = std::move(opened);
    return {};
  }

  Status fill_input(const JobImage& image, const Box& part, const NetworkInput& spec,
                    const TensorView& input) override {
    const BothTaps taps = area_taps_between(part, spec);
    DeviceCall call(device_);
    fill_planes(call, part_of(static_cast<const DeviceImage&>(image).device, part), taps, spec,
                floats(input));
    return call.finish();
  }

  Status to_probability(const TensorView& values, NetworkOutput output) override {
    DeviceCall call(device_);
    auto* const flag = call.scratch<std::uint32_t>(1);
    call.clear(flag, sizeof *flag);
    call.run<&Table::probability>(floats(values), values.size(), output == NetworkOutput::kLogit,
                                  flag);
    const std::uint32_t* const not_finite = call.fetch(flag);
    CUTOUT_RETURN_IF_ERROR(call.finish());
    return *not_finite == 0 ? Status{} : not_finite_output();
  }

  Status uncertainty(const TensorView& probability, const Box& area, Uncertainty& value) override {
    DeviceCall call(device_);
    auto* const on_device = call.scratch<UncertaintySums>(1);
    call.clear(on_device, sizeof *on_device);
    call.run<&Table::sum_uncertainty>(floats(probability), probability.width, area,
                                      uncertainty_block(probability.width, probability.height),
                                      on_device);
    const UncertaintySums* const sums = call.fetch(on_device);
    CUTOUT_RETURN_IF_ERROR(call.finish());
    value = uncertainty_of(*sums);
    return {};
  }

  Status filter_components(const TensorView& probability, const Box& area,
                           const std::optional<PlacedMask>& mask) override {
    float* const p = floats(probability);
    const auto filter = [&](DeviceCall& call, std::byte* scratch) {
      call.run<&Table::filter_components>(p, probability.width, area,
                                          reinterpret_cast<int*>(scratch));
    };
    const std::size_t for_components =
        cuda::component_scratch(area.width, area.height) * sizeof(int);
    if (!mask) {
      DeviceCall call(device_);
      filter(call, call.scratch<std::byte>(for_components));
      return call.finish();
    }
    const MaskAxes axes(*mask, probability.width, probability.height);
    DeviceCall call(device_);
    const std::span<const std::uint8_t> values = mask->mask.values;
    auto* const on_device = call.scratch<std::uint8_t>(values.size());
    call.upload(row_of(values), on_device, pool_);
    // One block, since filtering begins when constraining has ended.
    auto* const scratch = call.scratch<std::byte>(
        std::max(for_components, cuda::constraint_scratch(probability.width, probability.height)));
    auto* const marked =
        call.scratch<std::uint8_t>(cuda::block_count(probability.width, probability.height));
    float* const constrained = call.scratch<float>(probability.size());
    call.run<&Table::constrain>(p, on_device, mask->mask.width, axes.rows.on_device(call),
                                axes.columns.on_device(call), scratch, marked);
    call.run<&Table::copy_on_device>(constrained, p, probability.bytes());
    filter(call, scratch);
    call.run<&Table::restore_marked>(p, constrained, probability.width, probability.height, marked);
    return call.finish();
  }

  Status reduce(JobImage& image, int width, int height) override {
    auto& from = static_cast<DeviceImage&>(image);
    from.pixels = {from.pixels.data, width, height, static_cast<std::ptrdiff_t>(width) * 4};
    if (from.bounds() == Box{0, 0, width, height}) return {};
    const BothTaps taps{lanczos3_taps(from.device.height, height),
                        lanczos3_taps(from.device.width, width)};
    std::shared_ptr<void> memory;
    DeviceCall call(device_);
    auto* const words = call.allocate<std::uint32_t>(area(width, height), memory);
    const cuda::Pixels reduced{words, width, height, width};
    const cuda::FilterTaps rows = on_device(call, taps.rows);
    const cuda::FilterTaps columns = on_device(call, taps.columns);
    float* const scratch = call.scratch<float>(4 * area(from.device.width, height));
    call.run<&Table::reduce>(from.device, rows, columns, scratch, reduced);
    CUTOUT_RETURN_IF_ERROR(call.finish());
    from.device = reduced;
    from.memory = std::move(memory);
    return {};
  }

  Status solve(JobImage& image, const Box& part, const Prediction& prediction,
               std::unique_ptr<SolvedMatte>& solved) override {
    auto matte =
        std::make_unique<DeviceMatte>(device_, pool_, static_cast<DeviceImage&>(image), part);
    CUTOUT_RETURN_IF_ERROR(matte->solve(prediction));
    solved = std::move(matte);
    return {};
  }

 private:
  Device& device_;
  ThreadPool& pool_;
};

}  // namespace

std::unique_ptr<Backend> make_device_backend(Device& device, ThreadPool& pool) {
  return std::make_unique<DeviceBackend>(device, pool);
}

}  // namespace cutout
