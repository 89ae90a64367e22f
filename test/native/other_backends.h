#pragma once

#include <string>
#include <utility>
#include <vector>

#include "pipeline/cpu_backend.h"

namespace cutout::test {

/// A backend that does what another one does.
class DelegatingBackend : public Backend {
 public:
  explicit DelegatingBackend(Backend& other) : other_(other) {}

  [[nodiscard]] Placement placement() const override { return other_.placement(); }
  Status allocate(int planes, int height, int width, Tensor& tensor) override {
    return other_.allocate(planes, height, width, tensor);
  }
  Status upload(std::span<const float> values, const TensorView& tensor) override {
    return other_.upload(values, tensor);
  }
  Status download(const TensorView& tensor, std::span<float> values) override {
    return other_.download(tensor, values);
  }
  Status open_image(ImageView pixels, std::unique_ptr<JobImage>& image) override {
    return other_.open_image(pixels, image);
  }
  Status fill_input(const JobImage& image, const Box& part, const NetworkInput& spec,
                    const TensorView& input) override {
    return other_.fill_input(image, part, spec, input);
  }
  void expect_answer(Network& network, int slot, NetworkOutput output, const Box& area) override {
    other_.expect_answer(network, slot, output, area);
  }
  Status to_probability(const TensorView& values, NetworkOutput output, const Box& area,
                        Uncertainty& uncertainty) override {
    return other_.to_probability(values, output, area, uncertainty);
  }
  Status filter_components(const TensorView& probability, const Box& area,
                           const std::optional<PlacedMask>& mask) override {
    return other_.filter_components(probability, area, mask);
  }
  Status reduce(JobImage& image, int width, int height) override {
    return other_.reduce(image, width, height);
  }
  Status solve(JobImage& image, const Box& part, const Prediction& prediction,
               std::unique_ptr<SolvedMatte>& solved) override {
    return other_.solve(image, part, prediction, solved);
  }

 private:
  Backend& other_;
};

/// Says that its tensors are on a device, so that nobody reads them but by download().
class FarBackend final : public DelegatingBackend {
 public:
  using DelegatingBackend::DelegatingBackend;

  [[nodiscard]] Placement placement() const override { return Placement::kDevice; }
  Status allocate(int planes, int height, int width, Tensor& tensor) override {
    CUTOUT_RETURN_IF_ERROR(DelegatingBackend::allocate(planes, height, width, tensor));
    tensor.view.placement = Placement::kDevice;
    return {};
  }
  Status upload(std::span<const float> values, const TensorView& tensor) override {
    return DelegatingBackend::upload(values, near(tensor));
  }
  Status download(const TensorView& tensor, std::span<float> values) override {
    return DelegatingBackend::download(near(tensor), values);
  }
  Status fill_input(const JobImage& image, const Box& part, const NetworkInput& spec,
                    const TensorView& input) override {
    return DelegatingBackend::fill_input(image, part, spec, near(input));
  }
  Status to_probability(const TensorView& values, NetworkOutput output, const Box& area,
                        Uncertainty& uncertainty) override {
    return DelegatingBackend::to_probability(near(values), output, area, uncertainty);
  }
  Status filter_components(const TensorView& probability, const Box& area,
                           const std::optional<PlacedMask>& mask) override {
    return DelegatingBackend::filter_components(near(probability), area, mask);
  }
  Status solve(JobImage& image, const Box& part, const Prediction& prediction,
               std::unique_ptr<SolvedMatte>& solved) override {
    Prediction here = prediction;
    here.probability = near(prediction.probability);
    if (prediction.input) here.input = near(*prediction.input);
    std::unique_ptr<SolvedMatte> made;
    CUTOUT_RETURN_IF_ERROR(DelegatingBackend::solve(image, part, here, made));
    solved = std::make_unique<FarMatte>(std::move(made));
    return {};
  }

 private:
  class FarMatte final : public SolvedMatte {
   public:
    explicit FarMatte(std::unique_ptr<SolvedMatte> matte) : matte_(std::move(matte)) {}
    [[nodiscard]] TensorView alpha() const override {
      TensorView view = matte_->alpha();
      view.placement = Placement::kDevice;
      return view;
    }
    Status write(const Box& roi, HiddenColour hidden, MatteSummary& summary) const override {
      return matte_->write(roi, hidden, summary);
    }

   private:
    std::unique_ptr<SolvedMatte> matte_;
  };

  static TensorView near(TensorView tensor) {
    tensor.placement = Placement::kHost;
    return tensor;
  }
};

/// Writes down which kernels are called, with the width of what they work on.
class RecordingBackend final : public DelegatingBackend {
 public:
  using DelegatingBackend::DelegatingBackend;

  [[nodiscard]] const std::vector<std::string>& calls() const { return calls_; }

  Status fill_input(const JobImage& image, const Box& part, const NetworkInput& spec,
                    const TensorView& input) override {
    note("fillInput", spec.width);
    return DelegatingBackend::fill_input(image, part, spec, input);
  }
  Status to_probability(const TensorView& values, NetworkOutput output, const Box& area,
                        Uncertainty& uncertainty) override {
    note("toProbability", values.width);
    return DelegatingBackend::to_probability(values, output, area, uncertainty);
  }
  Status filter_components(const TensorView& probability, const Box& area,
                           const std::optional<PlacedMask>& mask) override {
    note("filterComponents", probability.width);
    return DelegatingBackend::filter_components(probability, area, mask);
  }
  Status reduce(JobImage& image, int width, int height) override {
    note("reduce", width);
    return DelegatingBackend::reduce(image, width, height);
  }
  Status solve(JobImage& image, const Box& part, const Prediction& prediction,
               std::unique_ptr<SolvedMatte>& solved) override {
    note("solve", prediction.probability.width);
    return DelegatingBackend::solve(image, part, prediction, solved);
  }

 private:
  void note(const char* kernel, int width) {
    calls_.push_back(std::string(kernel) + " " + std::to_string(width));
  }

  std::vector<std::string> calls_;
};

/// Does one kernel a little wrong.
class FaultyBackend final : public DelegatingBackend {
 public:
  FaultyBackend(Backend& other, std::string kernel)
      : DelegatingBackend(other), kernel_(std::move(kernel)) {}

  Status upload(std::span<const float> values, const TensorView& tensor) override {
    return kernel_ == "upload" ? Status{} : DelegatingBackend::upload(values, tensor);
  }
  Status fill_input(const JobImage& image, const Box& part, const NetworkInput& spec,
                    const TensorView& input) override {
    CUTOUT_RETURN_IF_ERROR(DelegatingBackend::fill_input(image, part, spec, input));
    if (kernel_ == "fill_input") host_floats(input)[5] += 0.01F;
    return {};
  }
  Status to_probability(const TensorView& values, NetworkOutput output, const Box& area,
                        Uncertainty& uncertainty) override {
    if (kernel_ == "to_probability") output = NetworkOutput::kProbability;
    CUTOUT_RETURN_IF_ERROR(DelegatingBackend::to_probability(values, output, area, uncertainty));
    if (kernel_ == "uncertainty") uncertainty.whole *= 1.001;
    return {};
  }
  Status filter_components(const TensorView& probability, const Box& area,
                           const std::optional<PlacedMask>& mask) override {
    if (kernel_ == "filter_components" && mask) return {};
    return DelegatingBackend::filter_components(probability, area, mask);
  }
  Status reduce(JobImage& image, int width, int height) override {
    CUTOUT_RETURN_IF_ERROR(DelegatingBackend::reduce(image, width, height));
    // A row is lost.
    if (kernel_ == "reduce") return DelegatingBackend::reduce(image, width, height - 1);
    return {};
  }
  Status solve(JobImage& image, const Box& part, const Prediction& prediction,
               std::unique_ptr<SolvedMatte>& solved) override {
    Prediction changed = prediction;
    if (kernel_ == "solve") changed.trained_on = TrainedOn::kMasks;
    return DelegatingBackend::solve(image, part, changed, solved);
  }

 private:
  const std::string kernel_;
};

}  // namespace cutout::test
