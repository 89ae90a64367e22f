#include "stress/device/job.h"

#include <algorithm>
#include <memory>

namespace cutout::test {

namespace {

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}

  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }
  int side(int most) {
    const int kind = pick(0, 4);
    return kind == 0 ? 1 : kind == 1 ? 2 * pick(1, most / 2) - 1 : pick(1, most);
  }
  Box box_in(const Box& box) {
    if (pick(0, 1) == 0) return {0, 0, box.width, box.height};
    const int width = pick(1, box.width);
    const int height = pick(1, box.height);
    return {pick(0, box.width - width), pick(0, box.height - height), width, height};
  }

 private:
  std::mt19937 engine_;
};

}  // namespace

DeviceJob::DeviceJob(unsigned seed) {
  Random random(seed);
  width = random.side(180);
  height = random.side(90);
  stride = width * 4 + (random.pick(0, 2) == 0 ? random.pick(1, 9) : 0);
  const int alpha = random.pick(0, 2);
  for (std::ptrdiff_t i = 0; i < stride * height; ++i) {
    const bool opacity = i % stride % 4 == 3;
    const int any = random.pick(0, 255);
    pixels.push_back(static_cast<std::uint8_t>(!opacity     ? any
                                               : alpha == 0 ? 255
                                               : alpha == 1 ? 0
                                                            : any));
  }
  const bool reduced = random.pick(0, 2) == 0;
  reduced_width = reduced ? random.pick(1, width) : width;
  reduced_height = reduced ? random.pick(1, height) : height;
  part = random.box_in({0, 0, width, height});
  seen = random.box_in({0, 0, reduced_width, reduced_height});
  roi = random.box_in(seen);
  spec = {random.side(70), random.side(50), {128, 120, 100}, {256, 220, 60}};
  const int kind = random.pick(0, 4);
  for (int y = 0; y < spec.height; ++y) {
    for (int x = 0; x < spec.width; ++x) {
      const float ramp = static_cast<float>(x - spec.width / 3) / 5;
      const float noise = static_cast<float>(random.pick(0, 1000)) / 1000;
      output.push_back(kind == 0   ? 0.0F
                       : kind == 1 ? 1.0F
                       : kind == 2 ? noise
                                   : std::clamp(ramp + noise / 4, -0.5F, 1.5F));
    }
  }
  trained_on = random.pick(0, 1) == 0 ? TrainedOn::kMasks : TrainedOn::kMattes;
  hidden = random.pick(0, 1) == 0 ? HiddenColour::kClear : HiddenColour::kKeep;
  if (seed % 2 == 0) return;
  mask_width = random.side(90);
  mask_height = random.side(60);
  const int longest = random.pick(0, 3) == 0 ? 0 : random.pick(1, 2000);  // of a patch
  const int least = random.pick(0, 255);
  for (int left = 0, value = 0; std::ssize(mask) < mask_width * mask_height; --left) {
    if (left <= 0) {
      left = random.pick(0, longest);
      value = random.pick(0, 3) == 0 ? random.pick(0, 255) : random.pick(0, 255) < least ? 0 : 255;
    }
    mask.push_back(static_cast<std::uint8_t>(value));
  }
}

std::optional<PlacedMask> DeviceJob::placed_mask() const {
  if (mask.empty()) return {};
  return PlacedMask{{mask, mask_width, mask_height}, reduced_width, reduced_height, seen};
}

bool DeviceResult::same_as(const DeviceResult& other) const {
  return pixels == other.pixels && input == other.input && alpha == other.alpha &&
         uncertainty.whole == other.uncertainty.whole &&
         uncertainty.patches == other.uncertainty.patches && summary.box == other.summary.box &&
         summary.opaque == other.summary.opaque &&
         summary.foreground_pixels == other.summary.foreground_pixels;
}

Status run_job(Backend& backend, const DeviceJob& job, DeviceResult& result, int steps) {
  const auto ended = [&] { return steps-- <= 0; };
  const auto cancelled = [] { return Status(Code::kCancelled); };
  std::vector<std::uint8_t> pixels = job.pixels;
  std::unique_ptr<JobImage> image;
  if (ended()) return cancelled();
  CUTOUT_RETURN_IF_ERROR(
      backend.open_image({pixels.data(), job.width, job.height, job.stride}, image));
  Tensor input;
  Tensor output;
  if (ended()) return cancelled();
  CUTOUT_RETURN_IF_ERROR(backend.allocate(3, job.spec.height, job.spec.width, input));
  if (ended()) return cancelled();
  CUTOUT_RETURN_IF_ERROR(backend.fill_input(*image, job.part, job.spec, input.view));
  if (ended()) return cancelled();
  CUTOUT_RETURN_IF_ERROR(backend.allocate(1, job.spec.height, job.spec.width, output));
  if (ended()) return cancelled();
  CUTOUT_RETURN_IF_ERROR(backend.upload(job.output, output.view));
  if (ended()) return cancelled();
  const Box whole{0, 0, job.spec.width, job.spec.height};
  CUTOUT_RETURN_IF_ERROR(
      backend.to_probability(output.view, NetworkOutput::kProbability, whole, result.uncertainty));
  if (ended()) return cancelled();
  CUTOUT_RETURN_IF_ERROR(backend.filter_components(output.view, whole, job.placed_mask()));
  if (ended()) return cancelled();
  if (job.reduced_width != job.width || job.reduced_height != job.height) {
    CUTOUT_RETURN_IF_ERROR(backend.reduce(*image, job.reduced_width, job.reduced_height));
  }
  if (ended()) return cancelled();
  std::unique_ptr<SolvedMatte> solved;
  CUTOUT_RETURN_IF_ERROR(
      backend.solve(*image, job.seen, {output.view, input.view, job.spec, job.trained_on}, solved));
  if (ended()) return cancelled();
  CUTOUT_RETURN_IF_ERROR(solved->write(job.roi, job.hidden, result.summary));
  if (ended()) return cancelled();
  result.input.resize(input.view.size());
  CUTOUT_RETURN_IF_ERROR(backend.download(input.view, result.input));
  result.alpha.resize(solved->alpha().size());
  CUTOUT_RETURN_IF_ERROR(backend.download(solved->alpha(), result.alpha));
  const bool packed = image->pixels.width != job.width || image->pixels.height != job.height;
  const auto row = static_cast<std::ptrdiff_t>(image->pixels.width) * 4;
  result.pixels.clear();
  for (int y = 0; y < image->pixels.height; ++y) {
    const auto first = pixels.begin() + y * (packed ? row : job.stride);
    result.pixels.insert(result.pixels.end(), first, first + row);
  }
  return {};
}

}  // namespace cutout::test
