#include "pipeline/device_backend.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "cuda/kernels/colour_sampling.h"
#include "cuda/kernels/component_filter.h"
#include "cuda/kernels/deblur.h"
#include "cuda/kernels/foreground_colours.h"
#include "cuda/kernels/mask_constraint.h"
#include "image/resample.h"
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
class DeviceImage final : public JobImage {
 public:
  explicit DeviceImage(ImageView pixels) : host(pixels) {}

  [[nodiscard]] int width() const override { return device.width; }
  [[nodiscard]] int height() const override { return device.height; }
  [[nodiscard]] bool changed() const override { return comes_back; }

  /// The rows that the image comes back to.
  [[nodiscard]] HostRows rows() const {
    return {reinterpret_cast<std::byte*>(host.data), static_cast<std::size_t>(host.height),
            area(host.width, 4), host.stride};
  }
  [[nodiscard]] Box bounds() const { return {0, 0, device.width, device.height}; }

  ImageView host;
  cuda::Pixels device{};
  std::shared_ptr<void> memory;
  bool comes_back = false;
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

template <typename T>
const T* constant(DeviceCall& call, const std::vector<T>& values) {
  return call.constant(std::span<const T>(values));
}

cuda::FilterTaps on_device(DeviceCall& call, const Taps& taps) {
  return {constant(call, taps.first), constant(call, taps.count), constant(call, taps.weights),
          taps.stride, taps.outputs()};
}

cuda::GuideTaps on_device(DeviceCall& call, const GuideAxis& axis, int outputs) {
  return {constant(call, axis.base),
          constant(call, axis.t),
          {constant(call, axis.spline[0]), constant(call, axis.spline[1]),
           constant(call, axis.spline[2]), constant(call, axis.spline[3])},
          outputs};
}

/// Where the network pixels of both axes lie in a mask; they outlive the call that uses them.
struct MaskAxes {
  struct Axis {
    std::vector<LinearTap> mask;
    std::vector<LinearTap> blocks;

    [[nodiscard]] cuda::MaskTaps on_device(DeviceCall& call) const {
      return {constant(call, mask), constant(call, blocks), static_cast<int>(mask.size())};
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

BothTaps input_taps(const Box& part, const NetworkInput& spec) {
  return {area_taps(part.height, spec.height), area_taps(part.width, spec.width)};
}

BothTaps plane_taps(const TensorView& from, int width, int height) {
  return {area_taps(from.height, height), area_taps(from.width, width)};
}

MatteSummary summary_of(const cuda::AlphaSummary& alpha, const Box& bounds) {
  MatteSummary summary;
  if (alpha.right >= 0) {
    summary.box = {alpha.left, alpha.top, alpha.right - alpha.left + 1,
                   alpha.bottom - alpha.top + 1};
  }
  summary.foreground_pixels = alpha.foreground;
  summary.opaque = alpha.opaque == area(bounds.width, bounds.height);
  return summary;
}

/// What a matte is written by and into.
struct Target {
  Device& device;
  ThreadPool& pool;
  DeviceImage& image;
  Box part;
};

/// The guide's planes on the device, which own memory where they are not the network's input.
struct DeviceGuide {
  cuda::GuidePlanes planes{};
  std::shared_ptr<void> memory;

  void set(const float* values, const Guide& guide) {
    planes.width = guide.width;
    planes.height = guide.height;
    for (std::size_t c = 0; c < 3; ++c) {
      planes.planes[c] = values + c * guide.size();
      planes.scale[c] = guide.scale[c];
      planes.offset[c] = guide.offset[c];
    }
  }
};

/// Alpha, its confidence, models and colours of the network pixels.
struct DeviceEdges {
  DeviceGuide guide;
  std::shared_ptr<void> memory;
  float* alpha = nullptr;
  float* confidence = nullptr;
  float* models = nullptr;
  float* colours = nullptr;

  static constexpr std::size_t kPlanes = 2 + kPlaneChannels + 6;

  void allocate(DeviceCall& call, std::size_t size) {
    alpha = call.allocate<float>(kPlanes * size, memory);
    if (alpha == nullptr) return;
    confidence = alpha + size;
    models = confidence + size;
    colours = models + kPlaneChannels * size;
  }
};

/// Edges at the guide's size, on the device.
class DeviceMatte final : public SolvedMatte {
 public:
  DeviceMatte(const Target& target, DeviceEdges edges)
      : target_(target), edges_(std::move(edges)) {}

  [[nodiscard]] TensorView alpha() const override {
    return {edges_.alpha, 1, edges_.guide.planes.height, edges_.guide.planes.width,
            Placement::kDevice};
  }

  Status write(const Box& roi, HiddenColour hidden, MatteSummary& summary) const override {
    DeviceImage& image = target_.image;
    const Box& part = target_.part;
    const GuideAxis rows(edges_.guide.planes.height, part.height);
    const GuideAxis columns(edges_.guide.planes.width, part.width);
    Box in_image = clip(roi, ConstImageView{nullptr, part.width, part.height, 0});
    in_image.left += part.left;
    in_image.top += part.top;
    cuda::AlphaSummary found{};
    DeviceCall call(target_.device);
    write_pixels(call, in_image, on_device(call, rows, part.height),
                 on_device(call, columns, part.width),
                 hidden == HiddenColour::kClear ? 0 : 0x00FFFFFFU);
    auto* const on_device = call.scratch<cuda::AlphaSummary>(1);
    call.run<&Table::summarise>(image.device, image.bounds(), on_device);
    call.run<&Table::copy_to_host>(&found, on_device, sizeof found);
    CUTOUT_RETURN_IF_ERROR(call.finish());
    image.comes_back = true;
    call.download(image.device.data, image.rows(), target_.pool);
    CUTOUT_RETURN_IF_ERROR(call.finish());
    summary = summary_of(found, image.bounds());
    return {};
  }

 private:
  /// `roi` in pixels of the image.
  void write_pixels(DeviceCall& call, const Box& roi, const cuda::GuideTaps& rows,
                    const cuda::GuideTaps& columns, std::uint32_t hidden_mask) const {
    const cuda::GuidePlanes& guide = edges_.guide.planes;
    float* const channels = call.scratch<float>(kChannels * area(guide.width, guide.height));
    call.run<&Table::full_size>(target_.image.device, target_.part, roi, guide, edges_.alpha,
                                edges_.confidence, edges_.models, edges_.colours, channels, rows,
                                columns, hidden_mask);
  }

  const Target target_;
  const DeviceEdges edges_;
};

/// The network's output and what colours say about it, planes of the guide's size on the device.
struct DeviceOutput {
  const float* p = nullptr;
  cuda::SampledPlanes samples{};
};

/// `from` at another size.
void queue_resized(DeviceCall& call, const TensorView& from, const BothTaps& taps, float* to) {
  const cuda::FilterTaps rows = on_device(call, taps.rows);
  const cuda::FilterTaps columns = on_device(call, taps.columns);
  float* const scratch = call.scratch<float>(area(from.width, rows.outputs));
  call.run<&Table::resize_plane>(floats(from), from.width, rows, columns, scratch, to);
}

/// One block for sampling, deblurring and colours, since each begins when the one before has ended.
std::byte* edge_scratch(DeviceCall& call, int width, int height) {
  const std::size_t most =
      std::max(cuda::colour_scratch(width, height), cuda::sampling_scratch(width, height));
  return call.scratch<std::byte>(
      std::max(cuda::deblur_scratch(width, height),
               (cuda::pyramid_size(width, height) + most) * sizeof(float)));
}

void queue_samples(DeviceCall& call, const cuda::GuidePlanes& guide, std::byte* scratch,
                   DeviceOutput& output) {
  const std::size_t size = area(guide.width, guide.height);
  float* const samples = call.scratch<float>(3 * size);
  if (samples == nullptr) return;
  auto* const pyramid = reinterpret_cast<float*>(scratch);
  call.run<&Table::sample_colours>(
      guide, output.p, pyramid, pyramid + cuda::pyramid_size(guide.width, guide.height), samples);
  output.samples = {samples, samples + size, samples + 2 * size};
}

/// An output without samples.
void without_samples(DeviceCall& call, std::size_t size, DeviceOutput& output) {
  float* const none = call.scratch<float>(size);
  call.clear(none, size * sizeof(float));
  output.samples = {output.p, none, none};
}

/// Alpha, its confidence, models and colours on the device.
void queue_edges(DeviceCall& call, const DeviceOutput& output, std::byte* scratch,
                 const DeviceEdges& edges) {
  const cuda::GuidePlanes& guide = edges.guide.planes;
  float* const for_colours = call.scratch<float>(area(guide.width, guide.height));
  if (scratch == nullptr) return;
  const float* const blurs = constant(call, blurs_by_slope());
  call.run<&Table::deblur>(guide, output.p, output.samples, blurs, scratch, edges.alpha,
                           edges.confidence, for_colours);
  call.run<&Table::local_models>(guide, edges.alpha, edges.models);
  auto* const levels = reinterpret_cast<float*>(scratch);
  call.run<&Table::foreground_colours>(guide, for_colours, levels,
                                       levels + cuda::pyramid_size(guide.width, guide.height),
                                       edges.colours);
}

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
    const BothTaps taps = input_taps(part, spec);
    DeviceCall call(device_);
    fill_planes(call, part_of(static_cast<const DeviceImage&>(image).device, part), taps, spec,
                floats(input));
    return call.finish();
  }

  Status to_probability(const TensorView& values, NetworkOutput output) override {
    std::uint32_t not_finite = 0;
    DeviceCall call(device_);
    auto* const flag = call.scratch<std::uint32_t>(1);
    call.clear(flag, sizeof not_finite);
    call.run<&Table::probability>(floats(values), values.size(), output == NetworkOutput::kLogit,
                                  flag);
    call.run<&Table::copy_to_host>(&not_finite, flag, sizeof not_finite);
    CUTOUT_RETURN_IF_ERROR(call.finish());
    return not_finite == 0 ? Status{} : not_finite_output();
  }

  Status uncertainty(const TensorView& probability, const Box& area, double& value) override {
    UncertaintySums sums{};
    DeviceCall call(device_);
    auto* const on_device = call.scratch<UncertaintySums>(1);
    call.clear(on_device, sizeof sums);
    call.run<&Table::sum_uncertainty>(floats(probability), probability.width, area,
                                      uncertainty_block(probability.width, probability.height),
                                      on_device);
    call.run<&Table::copy_to_host>(&sums, on_device, sizeof sums);
    CUTOUT_RETURN_IF_ERROR(call.finish());
    value = uncertainty_of(sums);
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
    CUTOUT_RETURN_IF_ERROR(check_reduction(from.width(), from.height(), width, height));
    from.host = {from.host.data, width, height, static_cast<std::ptrdiff_t>(width) * 4};
    if (width == from.width() && height == from.height()) return {};
    const BothTaps taps{lanczos3_taps(from.height(), height), lanczos3_taps(from.width(), width)};
    std::shared_ptr<void> memory;
    DeviceCall call(device_);
    auto* const words = call.allocate<std::uint32_t>(area(width, height), memory);
    const cuda::Pixels reduced{words, width, height, width};
    const cuda::FilterTaps rows = on_device(call, taps.rows);
    const cuda::FilterTaps columns = on_device(call, taps.columns);
    float* const scratch = call.scratch<float>(4 * area(from.width(), height));
    call.run<&Table::reduce>(from.device, rows, columns, scratch, reduced);
    CUTOUT_RETURN_IF_ERROR(call.finish());
    from.device = reduced;
    from.memory = std::move(memory);
    return {};
  }

  Status solve(JobImage& job_image, const Box& part, const Prediction& prediction,
               std::unique_ptr<SolvedMatte>& solved) override {
    auto& image = static_cast<DeviceImage&>(job_image);
    const Target target{device_, pool_, image, part};
    const TensorView& p = prediction.probability;
    const Guide guide = guide_of(prediction, part);
    const NetworkInput spec{guide.width, guide.height, {0, 0, 0}, {255, 255, 255}};
    const bool guided_by_input = input_is_guide(prediction.spec, p.width, p.height, part);
    const BothTaps taps = guided_by_input ? BothTaps{} : input_taps(part, spec);
    const bool resized = guide.width != p.width || guide.height != p.height;
    const BothTaps output_taps = resized ? plane_taps(p, guide.width, guide.height) : BothTaps{};
    DeviceEdges edges;
    DeviceOutput output{floats(p), {}};
    DeviceCall call(device_);
    if (guided_by_input) {
      edges.guide.set(floats(prediction.input.value()), guide);
    } else {
      float* const values = call.allocate<float>(3 * guide.size(), edges.guide.memory);
      fill_planes(call, part_of(image.device, part), taps, spec, values);
      edges.guide.set(values, guide);
    }
    if (resized) {
      float* const at_size = call.scratch<float>(guide.size());
      queue_resized(call, p, output_taps, at_size);
      output.p = at_size;
    }
    std::byte* const scratch = edge_scratch(call, guide.width, guide.height);
    if (prediction.trained_on == TrainedOn::kMasks) {
      queue_samples(call, edges.guide.planes, scratch, output);
    } else {
      without_samples(call, guide.size(), output);
    }
    edges.allocate(call, guide.size());
    queue_edges(call, output, scratch, edges);
    CUTOUT_RETURN_IF_ERROR(call.finish());
    solved = std::make_unique<DeviceMatte>(target, std::move(edges));
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
