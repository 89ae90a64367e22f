// The kernels of native/cuda/kernels/ that replace native/matte.
#include <cmath>
#include <memory>

#include "cuda/kernels/deblur.h"
#include "cuda/kernels/foreground_colours.h"
#include "matte/cubic_taps.h"
#include "matte/deblur.h"
#include "matte/foreground_colours.h"
#include "matte/local_model.h"
#include "matte/math/full_size.h"
#include "matte/pixels.h"
#include "matte/refine.h"
#include "matte/tiles.h"
#include "stress/cuda/kernels.h"

namespace cutout::test {

namespace {

constexpr float kScale = 0.9F;
constexpr float kOffset = 0.03F;

Guide guide_of(const Network& network) {
  Guide guide;
  guide.width = network.width;
  guide.height = network.height;
  for (std::size_t c = 0; c < 3; ++c) {
    guide.planes[c] = network.planes.data() + c * network.size();
    guide.scale[c] = kScale;
    guide.offset[c] = kOffset;
  }
  return guide;
}

cuda::GuidePlanes planes_of(const Network& network, const Buffer<float>& planes) {
  const float* const first = planes.data();
  return {{first, first + network.size(), first + 2 * network.size()},
          {kScale, kScale, kScale},
          {kOffset, kOffset, kOffset},
          network.width,
          network.height};
}

std::vector<float> models_of(const cuda::Table& table, const cuda::GuidePlanes& guide,
                             const Buffer<float>& alpha, std::size_t size) {
  const Buffer<float> models(table, kPlaneChannels * size);
  check(table, table.local_models(guide, alpha.data(), models.data(), nullptr));
  return models.read();
}

std::vector<float> colours_of(const cuda::Table& table, const cuda::GuidePlanes& guide,
                              const Buffer<float>& alpha, std::size_t size) {
  const Buffer<float> pyramid(table, cuda::pyramid_size(guide.width, guide.height));
  const Buffer<float> scratch(table, cuda::colour_scratch(guide.width, guide.height));
  const Buffer<float> colours(table, 6 * size);
  check(table, table.foreground_colours(guide, alpha.data(), pyramid.data(), scratch.data(),
                                        colours.data(), nullptr));
  return colours.read();
}

void local_models(Cases& cases, Tables tables, std::span<double> found) {
  const Network network(cases, cases.side(160), cases.side(60));
  const Guide guide = guide_of(network);
  std::vector<float> expected(kPlaneChannels * network.size());
  LocalModel model(guide, network.alpha.data(), 0, network.width);
  for (int y = 0; y < network.height; ++y) {
    model.row(y, expected.data() + guide.at(0, y), static_cast<int>(network.size()));
  }
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const cuda::Table& table = *tables[i];
    const Buffer<float> planes(table, network.planes);
    const Buffer<float> alpha(table, network.alpha);
    found[i] =
        difference(models_of(table, planes_of(network, planes), alpha, network.size()), expected);
  }
}

void foreground_colours(Cases& cases, Tables tables, std::span<double> found) {
  const Network network(cases, cases.side(90), cases.side(60));
  const Guide guide = guide_of(network);
  const std::vector<std::uint8_t> all(network.size(), 1);
  const LayerColours colours =
      estimate_colours(guide, network.alpha.data(),
                       tiles_near(all.data(), network.width, network.height, 1), pool());
  std::vector<float> expected;
  for (const auto* layer : {&colours.fore, &colours.back}) {
    for (const LargeArray<float>& plane : *layer) {
      expected.insert(expected.end(), plane.get(), plane.get() + network.size());
    }
  }
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const cuda::Table& table = *tables[i];
    const Buffer<float> planes(table, network.planes);
    const Buffer<float> alpha(table, network.alpha);
    found[i] =
        difference(colours_of(table, planes_of(network, planes), alpha, network.size()), expected);
  }
}

/// Outputs that deblurring meets: its guide's alpha (all 0, all 1, noise, a ramp), or edges of any
/// width, in places hard, which the guide shows too.
void draw_edges(Cases& cases, Network& network) {
  if (cases.pick(0, 3) == 0) return;
  const float soft = 0.3F + 4 * cases.share();
  const float across = static_cast<float>(network.width) * cases.share();
  const float radius = 2 + 30 * cases.share();
  const float noise = cases.pick(0, 1) == 0 ? 0.0F : 0.1F;
  for (int y = 0; y < network.height; ++y) {
    for (int x = 0; x < network.width; ++x) {
      const std::size_t index = static_cast<std::size_t>(y * network.width + x);
      const float dx = static_cast<float>(x) - across;
      const float dy = static_cast<float>(y - network.height / 2);
      const float far = std::sqrt(dx * dx + dy * dy) - radius + 3 * std::sin(dy);
      const float p = std::clamp(0.5F - far / (2 * soft), 0.0F, 1.0F);
      network.alpha[index] = p + noise * (cases.share() - 0.5F);
      for (std::size_t c = 0; c < 3; ++c) {
        float& colour = network.planes[c * network.size() + index];
        colour = 0.8F * (far < 0 ? 0.9F : 0.2F) + 0.2F * colour;
      }
    }
  }
  if (cases.pick(0, 4) == 0) network.alpha.back() = std::numeric_limits<float>::quiet_NaN();
}

ColourSampling samples_for(Cases& cases, const Guide& guide, const std::vector<float>& p) {
  const int kind = cases.pick(0, 2);
  if (kind == 0) return sample_colours(guide, p, pool());
  ColourSampling samples = without_samples(guide, p, pool());
  samples.none = kind != 1;
  for (std::size_t i = 0; kind == 1 && i < guide.size(); ++i) {
    samples.sample_confidence[i] = cases.share();
    samples.sampled_alpha[i] = cases.share();
    samples.alpha[i] +=
        samples.sample_confidence[i] * (samples.sampled_alpha[i] - samples.alpha[i]);
  }
  return samples;
}

void deblur(Cases& cases, Tables tables, std::span<double> found) {
  Network network(cases, cases.side(200), cases.side(160));
  draw_edges(cases, network);
  const Guide guide = guide_of(network);
  const std::size_t size = network.size();
  const ColourSampling samples = samples_for(cases, guide, network.alpha);
  const DeblurredMatte matte = deblur_matte(guide, network.alpha, samples, pool());
  const auto for_colours = alpha_for_colours(guide, matte.alpha.get(), samples, pool());
  std::vector<float> expected;
  for (const float* plane : {matte.alpha.get(), matte.confidence.get(), for_colours.get()}) {
    expected.insert(expected.end(), plane, plane + size);
  }
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const cuda::Table& table = *tables[i];
    const auto put = [&](const LargeArray<float>& plane) {
      return std::make_unique<Buffer<float>>(table, std::span<const float>(plane.get(), size));
    };
    const Buffer<float> planes(table, network.planes);
    const Buffer<float> p(table, network.alpha);
    const auto alpha = put(samples.alpha);
    const auto confidence = put(samples.sample_confidence);
    const auto sampled = put(samples.sampled_alpha);
    const Buffer<float> blurs(table, blurs_by_slope());
    const Buffer<std::uint8_t> scratch(table, cuda::deblur_scratch(network.width, network.height));
    const Buffer<float> out(table, 3 * size);
    check(table, table.deblur(planes_of(network, planes), p.data(),
                              {alpha->data(), confidence->data(), sampled->data()}, blurs.data(),
                              scratch.data(), out.data(), out.data() + size, out.data() + 2 * size,
                              nullptr));
    found[i] = difference(out.read(), expected);
  }
}

class DeviceAxis {
 public:
  DeviceAxis(const cuda::Table& table, const GuideAxis& axis, int outputs)
      : base_(table, axis.base),
        t_(table, axis.t),
        a_(table, axis.spline[0]),
        b_(table, axis.spline[1]),
        c_(table, axis.spline[2]),
        d_(table, axis.spline[3]),
        outputs_(outputs) {}
  [[nodiscard]] cuda::GuideTaps get() const {
    return {base_.data(), t_.data(), {a_.data(), b_.data(), c_.data(), d_.data()}, outputs_};
  }

 private:
  Buffer<int> base_;
  Buffer<float> t_, a_, b_, c_, d_;
  int outputs_;
};

/// An image, the part of it that a network saw, and a region of interest in that, of which
/// everything else becomes transparent.
struct Shown {
  Image image;
  Box part;
  Box roi;  // in pixels of the image
  HiddenColour hidden;

  explicit Shown(Cases& cases)
      : image(cases, cases.side(300), cases.side(90)),
        part(cases.pick(0, 1) == 0 ? Box{0, 0, image.width, image.height}
                                   : cases.box_in(image.width, image.height)),
        roi(cases.box_in(part.width, part.height)),
        hidden(cases.pick(0, 1) == 0 ? HiddenColour::kKeep : HiddenColour::kClear) {
    roi.left += part.left;
    roi.top += part.top;
  }

  /// What `write` of a part of an image, with the region in pixels of the part, makes of all of it.
  template <typename Write>
  [[nodiscard]] std::vector<std::uint32_t> expected(const Write& write) const {
    Image result = image;
    write(part_of(result.view(), part),
          Box{roi.left - part.left, roi.top - part.top, roi.width, roi.height});
    clear_around(result.view(), {0, 0, image.width, image.height}, part, hidden);
    return result.words;
  }

  [[nodiscard]] std::uint32_t hidden_mask() const {
    return hidden == HiddenColour::kKeep ? 0x00FFFFFFU : 0U;
  }
};

/// The whole of the refinement behind deblurring: models, colours, every pixel.
void full_size(Cases& cases, Tables tables, std::span<double> found) {
  const Shown shown(cases);
  const auto& [image, part, roi, hidden] = shown;
  const Network network(cases, cases.side(60), cases.side(40));
  const Guide guide = guide_of(network);
  const ColourSampling none = without_samples(guide, network.alpha, pool());
  const DeblurredMatte matte = deblur_matte(guide, network.alpha, none, pool());
  const std::vector<std::uint32_t> expected = shown.expected([&](ImageView view, const Box& box) {
    write_edges(view, solve_edges(guide, network.alpha, none, pool()), box, shown.hidden, pool());
  });
  const std::span<const float> deblurred(matte.alpha.get(), network.size());
  const std::span<const float> confident(matte.confidence.get(), network.size());
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const cuda::Table& table = *tables[i];
    const Buffer<std::uint32_t> words(table, image.words);
    const Buffer<float> planes(table, network.planes);
    const Buffer<float> alpha(table, deblurred);
    const Buffer<float> confidence(table, confident);
    const cuda::GuidePlanes device_guide = planes_of(network, planes);
    const Buffer<float> models(table, models_of(table, device_guide, alpha, network.size()));
    const Buffer<float> colours(table, colours_of(table, device_guide, alpha, network.size()));
    const Buffer<float> channels(table, kChannels * network.size());
    const DeviceAxis rows(table, GuideAxis(network.height, part.height), part.height);
    const DeviceAxis columns(table, GuideAxis(network.width, part.width), part.width);
    check(table, table.full_size(pixels(words, image.width, image.height), part, roi, device_guide,
                                 alpha.data(), confidence.data(), models.data(), colours.data(),
                                 channels.data(), rows.get(), columns.get(), shown.hidden_mask(),
                                 nullptr));
    const std::vector<std::uint32_t> got = words.read();
    found[i] = got == expected ? 0 : difference(got, expected);
  }
}

constexpr Check kChecks[] = {
    {"deblur", 0, 0, 3, deblur},
    {"local_models", 0, 0, 3, local_models},
    {"foreground_colours", 0, 0, 4, foreground_colours},
    {"full_size", 0, 0, 5, full_size},
};

}  // namespace

std::span<const Check> matte_checks() { return kChecks; }

}  // namespace cutout::test
