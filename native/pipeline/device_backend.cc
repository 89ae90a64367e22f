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
#include "image/taps.h"
#include "matte/cubic_taps.h"
#include "matte/deblur.h"
#include "matte/math/full_size.h"
#include "matte/math/uncertainty.h"
#include "pipeline/edge_runs.h"

namespace cutout {

namespace {

using cuda::Table;

std::size_t area(int width, int height) {
  return static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
}

constexpr std::size_t kGrain = 16;  // rows that a thread copies at a time

/// Bytes of the summary, which precedes an image's pixels on the device and in the copy that comes
/// back.
constexpr std::size_t kBeforePixels = 256;

/// The caller's pixels and their copy on the device, in rows without padding.
struct DeviceImage final : JobImage {
  using JobImage::JobImage;

  [[nodiscard]] Box bounds() const { return {0, 0, device.width, device.height}; }
  /// Bytes of the pixels and of what precedes them.
  [[nodiscard]] std::size_t bytes() const {
    return kBeforePixels + 4 * area(device.width, device.height);
  }
  /// The caller's rows, each with its copy on the host.
  template <typename Copy>
  void for_rows(ThreadPool& pool, const Copy& copy) const {
    const std::size_t row = 4 * area(pixels.width, 1);
    pool.parallel_for(
        static_cast<std::size_t>(pixels.height), kGrain, [&](std::size_t begin, std::size_t end) {
          for (std::size_t y = begin; y < end; ++y)
            copy(pixels.row(static_cast<int>(y)), copied + kBeforePixels + y * row, row);
        });
  }

  /// Places summary and pixels in memory of the device.
  void place(std::byte* memory) {
    summary = memory;
    device.data = reinterpret_cast<std::uint32_t*>(memory + kBeforePixels);
  }

  std::byte* copied = nullptr;   // on the host, page-locked
  std::byte* summary = nullptr;  // of the device
  cuda::Pixels device{};
  std::shared_ptr<void> memory;  // where the image was reduced
  bool reduced = false;          // the caller's rows have other pixels
};

cuda::Pixels part_of(const cuda::Pixels& pixels, const Box& part) {
  return {pixels.data + area(pixels.stride, part.top) + part.left, part.width, part.height,
          pixels.stride};
}

float* floats(const TensorView& tensor) { return static_cast<float*>(tensor.data); }

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

/// Says where the network pixels of one axis lie in a mask and between blocks.
cuda::MaskTaps on_device(DeviceCall& call, const std::vector<LinearTap>& mask,
                         const std::vector<LinearTap>& blocks) {
  return {call.constant(mask), call.constant(blocks), static_cast<int>(mask.size())};
}

void fill_planes(DeviceCall& call, const cuda::Pixels& image, const NetworkInput& spec,
                 float* out) {
  cuda::Normalisation how{};
  for (std::size_t c = 0; c < 3; ++c) {
    how.mean[c] = spec.mean[c];
    how.scale[c] = 1.0F / spec.std[c];
  }
  const cuda::FilterTaps rows = on_device(call, area_taps(image.height, spec.height));
  const cuda::FilterTaps columns = on_device(call, area_taps(image.width, spec.width));
  float* const scratch = call.scratch<float>(4 * area(image.width, spec.height));
  call.run<&Table::network_input>(image, rows, columns, how, scratch, out);
}

/// Edges at the guide's size, on the device: alpha, its confidence, models and colours of the
/// network pixels.
class DeviceMatte final : public SolvedMatte {
 public:
  DeviceMatte(DeviceCall& call, ThreadPool& pool, DeviceImage& image, const Box& part)
      : call_(call), pool_(pool), image_(image), part_(part) {}

  /// Refines a prediction: solve_matte of cpu_backend.h.
  Status solve(const Prediction& prediction) {
    const TensorView& p = prediction.probability;
    const Guide guide = guide_of(prediction, part_);
    const std::size_t size = guide.size();
    const NetworkInput spec{guide.width, guide.height, {0, 0, 0}, {255, 255, 255}};
    const bool guided_by_input = input_is_guide(prediction.spec, p.width, p.height, part_);
    const bool resized = guide.width != p.width || guide.height != p.height;
    // All together, with what write() needs.
    const cuda::FilterTaps output_rows = on_device(call_, area_taps(p.height, guide.height));
    const cuda::FilterTaps output_columns = on_device(call_, area_taps(p.width, guide.width));
    rows_ = on_device(call_, GuideAxis(guide.height, part_.height), part_.height);
    columns_ = on_device(call_, GuideAxis(guide.width, part_.width), part_.width);
    const float* const blurs = call_.constant(blurs_by_slope());
    // One block for sampling, deblurring and colours, since each begins when the one before has
    // ended.
    const std::size_t levels = cuda::pyramid_size(guide.width, guide.height);
    const std::size_t most = std::max(cuda::colour_scratch(guide.width, guide.height),
                                      cuda::sampling_scratch(guide.width, guide.height));
    call_.end_step();
    auto* const scratch = call_.scratch<std::byte>(
        std::max(cuda::deblur_scratch(guide.width, guide.height), (levels + most) * sizeof(float)));
    const bool has_samples = prediction.trained_on == TrainedOn::kMasks;
    float* const sampled = call_.scratch<float>(has_samples ? 3 * size : size);
    float* const for_colours = call_.scratch<float>(size);
    float* const values = guided_by_input ? floats(prediction.input.value())
                                          : call_.allocate<float>(3 * size, guide_memory_);
    alpha_ = call_.allocate<float>((2 + kPlaneChannels + 6) * size, memory_);
    if (alpha_ == nullptr) return call_.status();
    confidence_ = alpha_ + size;
    models_ = confidence_ + size;
    colours_ = models_ + kPlaneChannels * size;
    if (!guided_by_input) {
      fill_planes(call_, part_of(image_.device, part_), spec, values);
    }
    set_guide(values, guide);
    const float* output = floats(p);
    if (resized) {
      float* const lines = call_.scratch<float>(area(p.width, guide.height));
      float* const at_size = call_.scratch<float>(size);
      call_.run<&Table::resize_plane>(output, p.width, output_rows, output_columns, lines, at_size);
      output = at_size;
    }
    auto* const pyramid = reinterpret_cast<float*>(scratch);
    cuda::SampledPlanes samples{output, sampled, sampled};  // none
    if (has_samples) {
      samples = {sampled, sampled + size, sampled + 2 * size};
      call_.run<&Table::sample_colours>(guide_, output, pyramid, pyramid + levels, sampled);
    } else {
      call_.clear(sampled, size * sizeof(float));
    }
    call_.run<&Table::deblur>(guide_, output, samples, blurs, scratch, alpha_, confidence_,
                              for_colours);
    call_.run<&Table::local_models>(guide_, alpha_, models_);
    call_.run<&Table::foreground_colours>(guide_, for_colours, pyramid, pyramid + levels, colours_);
    return call_.status();
  }

  [[nodiscard]] TensorView alpha() const override {
    return {alpha_, 1, guide_.height, guide_.width, Placement::kDevice};
  }

  Status write(const Box& roi, HiddenColour hidden, MatteSummary& summary) const override {
    Box in_image = clip(roi, ConstImageView{nullptr, part_.width, part_.height, 0});
    in_image.left += part_.left;
    in_image.top += part_.top;
    call_.end_step();
    float* const channels = call_.scratch<float>(kChannels * area(guide_.width, guide_.height));
    call_.run<&Table::full_size>(image_.device, part_, in_image, guide_, alpha_, confidence_,
                                 models_, colours_, channels, rows_, columns_,
                                 hidden == HiddenColour::kClear ? 0 : 0x00FFFFFFU);
    const EdgeRunsBlock edges(image_.device.width, image_.device.height);
    bool whole = image_.reduced || edges.bytes() == 0;
    if (!whole) {
      call_.end_step();
      auto* const block = call_.scratch<std::byte>(edges.bytes());
      if (block == nullptr) return call_.status();
      const cuda::EdgeRuns runs = edges.runs(block);
      call_.clear(runs.count, sizeof *runs.count);
      call_.run<&Table::gather_edge_runs>(image_.device, runs);
      CUTOUT_RETURN_IF_ERROR(bring_back(block, edges.bytes()));
      whole = !edges.write(image_.copied, image_.pixels, hidden, pool_);
    }
    if (whole) {
      CUTOUT_RETURN_IF_ERROR(bring_back(image_.summary, image_.bytes()));
      image_.for_rows(pool_, [](std::uint8_t* to, const std::byte* from, std::size_t bytes) {
        std::memcpy(to, from, bytes);
      });
    }
    const auto& found = *reinterpret_cast<const cuda::AlphaSummary*>(image_.copied);
    const bool opaque = found.opaque == area(image_.device.width, image_.device.height);
    summary = Summary{found.left, found.top, found.right, found.bottom, found.foreground, opaque}
                  .result();
    return {};
  }

 private:
  /// Copies the summary and what is behind it to the host.
  Status bring_back(std::byte* summary, std::size_t bytes) const {
    call_.run<&Table::summarise>(image_.device, image_.bounds(),
                                 reinterpret_cast<cuda::AlphaSummary*>(summary));
    call_.run<&Table::copy_to_host>(image_.copied, summary, bytes);
    return call_.finish();
  }

  void set_guide(const float* values, const Guide& guide) {
    guide_.width = guide.width;
    guide_.height = guide.height;
    for (std::size_t c = 0; c < 3; ++c) {
      guide_.planes[c] = values + c * guide.size();
      guide_.scale[c] = guide.scale[c];
      guide_.offset[c] = guide.offset[c];
    }
  }

  DeviceCall& call_;
  ThreadPool& pool_;
  DeviceImage& image_;
  const Box part_;
  cuda::GuideTaps rows_{};
  cuda::GuideTaps columns_{};
  cuda::GuidePlanes guide_{};
  std::shared_ptr<void> guide_memory_;  // of its planes, where they are not the network's input
  std::shared_ptr<void> memory_;        // of what follows
  float* alpha_ = nullptr;
  float* confidence_ = nullptr;
  float* models_ = nullptr;
  float* colours_ = nullptr;
};

/// What the host has to know of a network's answer.
struct Answer {
  UncertaintySums sums;
  std::uint32_t not_finite;
};

class DeviceBackend final : public Backend {
 public:
  DeviceBackend(Device& device, ThreadPool& pool) : call_(device), pool_(pool) {}

  [[nodiscard]] Placement placement() const override { return Placement::kDevice; }

  Status allocate(int planes, int height, int width, Tensor& tensor) override {
    tensor.view = {nullptr, planes, height, width, Placement::kDevice};
    tensor.view.data = call_.allocate<float>(tensor.view.size(), tensor.memory);
    return call_.status();
  }

  Status upload(std::span<const float> values, const TensorView& tensor) override {
    call_.run<&Table::copy_on_device>(tensor.data, call_.constant(values), tensor.bytes());
    return call_.finish();
  }

  Status download(const TensorView& tensor, std::span<float> values) override {
    std::byte* const copied = call_.on_host(tensor.bytes());
    call_.run<&Table::copy_to_host>(copied, tensor.data, tensor.bytes());
    CUTOUT_RETURN_IF_ERROR(call_.finish());
    std::memcpy(values.data(), copied, tensor.bytes());
    return {};
  }

  Status open_image(ImageView pixels, std::unique_ptr<JobImage>& image) override {
    auto opened = std::make_unique<DeviceImage>(pixels);
    opened->device = {nullptr, pixels.width, pixels.height, pixels.width};
    const Mirrored memory = call_.mirrored(opened->bytes());
    answer_ = call_.mirrored(sizeof(Answer));  // behind it, so that both are copied together
    CUTOUT_RETURN_IF_ERROR(call_.status());
    opened->copied = memory.host;
    opened->place(memory.device);
    opened->for_rows(pool_, [](const std::uint8_t* from, std::byte* to, std::size_t bytes) {
      std::memcpy(to, from, bytes);
    });
    image = std::move(opened);
    return {};
  }

  Status fill_input(const JobImage& image, const Box& part, const NetworkInput& spec,
                    const TensorView& input) override {
    call_.end_step();
    fill_planes(call_, part_of(static_cast<const DeviceImage&>(image).device, part), spec,
                floats(input));
    return call_.finish();
  }

  void expect_answer(Network& network, int slot, NetworkOutput output, const Box& area) override {
    const TensorView values = network.output_plane(slot);
    answer_work_ =
        std::make_shared<const WorkOnDevice>([this, values, output, area](DeviceCall& call) {
          queue_answer(call, values, output, area);
        });
    if (!network.queue_behind(slot, answer_work_)) answer_work_.reset();
  }

  Status to_probability(const TensorView& values, NetworkOutput output, const Box& area,
                        Uncertainty& uncertainty) override {
    if (!std::exchange(answer_work_, nullptr)) {
      if (answer_.host == nullptr) answer_ = call_.mirrored(sizeof(Answer));
      queue_answer(call_, values, output, area);
      CUTOUT_RETURN_IF_ERROR(call_.finish());
    }
    const auto& found = *reinterpret_cast<const Answer*>(answer_.host);
    if (found.not_finite != 0) return not_finite_output();
    uncertainty = uncertainty_of(found.sums);
    return {};
  }

  Status filter_components(const TensorView& probability, const Box& area,
                           const std::optional<PlacedMask>& mask) override {
    float* const p = floats(probability);
    call_.end_step();
    std::size_t bytes = cuda::component_scratch(area.width, area.height) * sizeof(int);
    const auto filter = [&](void* scratch) {
      call_.run<&Table::filter_components>(p, probability.width, area, static_cast<int*>(scratch));
      return call_.status();
    };
    if (!mask) return filter(call_.scratch<std::byte>(bytes));
    const SubjectMask& given = mask->mask;
    const Box& view = mask->view;
    const BlockGrid grid(probability.width, probability.height);
    const std::uint8_t* const values = call_.constant(given.values);
    const cuda::MaskTaps rows = on_device(
        call_, mask_taps(view.top, view.height, mask->height, given.height, probability.height),
        block_taps(probability.height, grid.side, grid.rows));
    const cuda::MaskTaps columns = on_device(
        call_, mask_taps(view.left, view.width, mask->width, given.width, probability.width),
        block_taps(probability.width, grid.side, grid.columns));
    // One block, since filtering begins when constraining has ended.
    bytes = std::max(bytes, cuda::constraint_scratch(probability.width, probability.height));
    auto* const scratch = call_.scratch<std::byte>(bytes);
    auto* const marked =
        call_.scratch<std::uint8_t>(cuda::block_count(probability.width, probability.height));
    float* const constrained = call_.scratch<float>(probability.size());
    call_.run<&Table::constrain>(p, values, given.width, rows, columns, scratch, marked);
    call_.run<&Table::copy_on_device>(constrained, p, probability.bytes());
    CUTOUT_RETURN_IF_ERROR(filter(scratch));
    call_.run<&Table::restore_marked>(p, constrained, probability.width, probability.height,
                                      marked);
    return call_.status();
  }

  Status reduce(JobImage& image, int width, int height) override {
    auto& from = static_cast<DeviceImage&>(image);
    from.reduced = true;
    from.pixels = {from.pixels.data, width, height, static_cast<std::ptrdiff_t>(width) * 4};
    if (from.bounds() == Box{0, 0, width, height}) return {};
    call_.end_step();
    const cuda::Pixels whole = from.device;
    from.device = {nullptr, width, height, width};
    from.place(call_.allocate<std::byte>(from.bytes(), from.memory));
    const cuda::FilterTaps rows = on_device(call_, lanczos3_taps(whole.height, height));
    const cuda::FilterTaps columns = on_device(call_, lanczos3_taps(whole.width, width));
    float* const scratch = call_.scratch<float>(4 * area(whole.width, height));
    call_.run<&Table::reduce>(whole, rows, columns, scratch, from.device);
    return call_.status();
  }

  Status solve(JobImage& image, const Box& part, const Prediction& prediction,
               std::unique_ptr<SolvedMatte>& solved) override {
    auto matte =
        std::make_unique<DeviceMatte>(call_, pool_, static_cast<DeviceImage&>(image), part);
    CUTOUT_RETURN_IF_ERROR(matte->solve(prediction));
    solved = std::move(matte);
    return {};
  }

 private:
  void queue_answer(DeviceCall& call, const TensorView& values, NetworkOutput output,
                    const Box& area) const {
    auto* const answer = reinterpret_cast<Answer*>(answer_.device);
    call.clear(answer, sizeof *answer);
    call.run<&Table::probability>(floats(values), values.size(), output == NetworkOutput::kLogit,
                                  &answer->not_finite);
    call.run<&Table::sum_uncertainty>(floats(values), values.width, area,
                                      uncertainty_block(values.width, values.height),
                                      &answer->sums);
    call.run<&Table::copy_to_host>(answer_.host, answer, sizeof *answer);
  }

  DeviceCall call_;
  ThreadPool& pool_;
  Mirrored answer_;
  std::shared_ptr<const WorkOnDevice> answer_work_;  // that a network has behind its run
};

}  // namespace

std::unique_ptr<Backend> make_device_backend(Device& device, ThreadPool& pool) {
  return std::make_unique<DeviceBackend>(device, pool);
}

}  // namespace cutout
