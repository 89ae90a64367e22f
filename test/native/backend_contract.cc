#include "native/backend_contract.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>

#include "image/network_input.h"
#include "image/plane.h"
#include "image/resample.h"
#include "matte/colour_sampling.h"
#include "matte/component_filter.h"
#include "matte/mask_constraint.h"
#include "matte/pixels.h"
#include "matte/refine.h"
#include "scalar/image.h"
#include "scalar/matte.h"

namespace cutout::test {

namespace {

struct Picture {
  int width;
  int height;
  std::ptrdiff_t stride;
  std::vector<std::uint8_t> bytes;

  ImageView view() { return {bytes.data(), width, height, stride}; }
};

/// Coloured stripes with noise; every seventh pixel is translucent.
Picture draw(int width, int height, int padding) {
  std::mt19937 random(static_cast<unsigned>(width * 31 + height));
  const std::ptrdiff_t stride = width * 4L + padding;
  Picture picture{width, height, stride,
                  std::vector<std::uint8_t>(static_cast<std::size_t>(stride * height))};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      std::uint8_t* pixel = picture.view().row(y) + static_cast<std::ptrdiff_t>(x) * 4;
      const bool subject = std::hypot(x - width / 2.0, y - height / 2.0) < height * 0.3;
      for (int c = 0; c < 3; ++c) {
        const auto noise = static_cast<int>(random() % 24);
        pixel[c] = static_cast<std::uint8_t>((subject ? 190 - 40 * c : 40 + 20 * c) + noise);
      }
      pixel[3] = (x + y) % 7 == 0 ? 200 : 255;
    }
  }
  return picture;
}

/// A disc of the given radius, as parts of the height, whose edge is `soft` pixels wide.
std::vector<float> disc(int width, int height, double across, double radius, double soft) {
  std::vector<float> p;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const double distance = std::hypot(x + 0.5 - width * across, y + 0.5 - height / 2.0);
      p.push_back(
          static_cast<float>(std::clamp((radius * height - distance) / soft + 0.5, 0.0, 1.0)));
    }
  }
  return p;
}

class Contract {
 public:
  Contract(Backend& backend, const ContractLimits& limits) : backend_(backend), limits_(limits) {}

  std::vector<std::string> run() {
    memory();
    fill_input();
    to_probability();
    uncertainty();
    filter_components();
    find_marked_subject();
    reduce();
    for (const TrainedOn trained_on : {TrainedOn::kMasks, TrainedOn::kMattes}) {
      solve(trained_on, 150, 118);
      solve(trained_on, 61, 47);  // smaller than the prediction
    }
    return std::move(faults_);
  }

 private:
  void expect(bool good, const std::string& kernel, const std::string& what) {
    if (!good) faults_.push_back(kernel + ": " + what);
  }

  Tensor allocated(int planes, int height, int width) {
    Tensor tensor;
    expect(backend_.allocate(planes, height, width, tensor).ok(), "allocate", "failed");
    return tensor;
  }

  std::unique_ptr<JobImage> opened(ImageView pixels) {
    std::unique_ptr<JobImage> image;
    expect(backend_.open_image(pixels, image).ok(), "open_image", "failed");
    expect(image->pixels.width == pixels.width && image->pixels.height == pixels.height,
           "open_image", "an image of another size");
    return image;
  }

  Tensor uploaded(std::span<const float> values, int planes, int height, int width) {
    Tensor tensor = allocated(planes, height, width);
    expect(backend_.upload(values, tensor.view).ok(), "upload", "failed");
    return tensor;
  }

  std::vector<float> downloaded(const TensorView& tensor) {
    std::vector<float> values(tensor.size());
    expect(backend_.download(tensor, values).ok(), "download", "failed");
    return values;
  }

  void memory() {
    const std::vector<float> values = disc(37, 23, 0.4, 0.3, 9);
    const Tensor tensor = uploaded(values, 1, 23, 37);
    const Tensor other = uploaded(std::vector<float>(37 * 23, 7.0F), 1, 23, 37);
    expect(tensor.view.placement == backend_.placement() && tensor.view.planes == 1 &&
               tensor.view.height == 23 && tensor.view.width == 37,
           "allocate", "a tensor of another shape or at another place");
    expect(downloaded(tensor.view) == values, "upload", "values come back changed");
  }

  void fill_input() {
    for (const auto& [width, height] : {std::pair{90, 70}, {17, 200}}) {
      Picture picture = draw(width, height, 12);
      const NetworkInput spec{48, 32, {128, 120, 100}, {256, 220, 60}};
      const std::size_t plane = 48 * 32;
      const Tensor input = allocated(3, spec.height, spec.width);
      const Box part{3, 2, width - 5, height - 7};
      expect(backend_.fill_input(*opened(picture.view()), part, spec, input.view).ok(),
             "fill_input", "failed");
      const std::vector<float> given = downloaded(input.view);
      std::vector<float> wanted(3 * plane);
      fill_network_input_scalar(part_of(picture.view(), part), spec, wanted.data());
      bool close = true;
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        close &= std::abs(given[i] - wanted[i]) * spec.std[i / plane] / 255 <= limits_.input;
      }
      expect(close, "fill_input", "values are not those of the image");
    }
  }

  void to_probability() {
    const std::vector<float> values{-90, -3, -0.5F, 0, 0.25F, 1, 1.5F, 4, 90};
    const auto width = static_cast<int>(values.size());
    const Tensor logits = uploaded(values, 1, 1, width);
    const Tensor plain = uploaded(values, 1, 1, width);
    const Box all{0, 0, width, 1};
    Uncertainty ignored;
    expect(backend_.to_probability(logits.view, NetworkOutput::kLogit, all, ignored).ok() &&
               backend_.to_probability(plain.view, NetworkOutput::kProbability, all, ignored).ok(),
           "to_probability", "failed");
    const std::vector<float> sigmoid = downloaded(logits.view);
    const std::vector<float> clamped = downloaded(plain.view);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double wanted = 1 / (1 + std::exp(-static_cast<double>(values[i])));
      expect(std::abs(static_cast<double>(sigmoid[i]) - wanted) <=
                 static_cast<double>(limits_.probability),
             "to_probability", "a sigmoid is wrong");
      expect(clamped[i] == std::clamp(values[i], 0.0F, 1.0F), "to_probability",
             "a probability is not clamped");
    }
    for (const float wrong : {NAN, INFINITY, -INFINITY}) {
      const Tensor tensor = uploaded(std::vector<float>{0.5F, wrong, 0.5F}, 1, 1, 3);
      expect(backend_.to_probability(tensor.view, NetworkOutput::kLogit, {0, 0, 3, 1}, ignored)
                     .code() == Code::kModel,
             "to_probability", "a value that is no finite number is taken");
    }
  }

  /// The mean of p (1 - p), and of its least in blocks, over the mean of p, in steps of 1/2047.
  static Uncertainty uncertainty_of(std::span<const float> p, int width, const Box& area,
                                    int block) {
    double variance = 0;
    double patches = 0;
    double belief = 0;
    for (int top = 0; top < area.height; top += block) {
      for (int left = 0; left < area.width; left += block) {
        double least = 1;
        int pixels = 0;
        for (int y = top; y < std::min(top + block, area.height); ++y) {
          for (int x = left; x < std::min(left + block, area.width); ++x, ++pixels) {
            const auto i = static_cast<std::size_t>((area.top + y) * width + area.left + x);
            const double value = std::floor(static_cast<double>(p[i]) * 2047 + 0.5) / 2047;
            least = std::min(least, value * (1 - value));
            variance += value * (1 - value);
            belief += value;
          }
        }
        patches += least * pixels;
      }
    }
    if (belief == 0) return {1, 1};
    return {variance / belief, patches / belief};
  }

  bool measure(const Tensor& p, const Box& area, Uncertainty& found) {
    return backend_.to_probability(p.view, NetworkOutput::kProbability, area, found).ok();
  }

  void uncertainty() {
    struct Case {
      int width;
      int height;
      int block;
    };
    for (const Case& size : {Case{60, 40, 1}, Case{600, 520, 2}, Case{300, 1030, 4}}) {
      const auto [width, height, block] = size;
      for (const double soft : {1.0, 8.0, 60.0}) {
        const std::vector<float> p = disc(width, height, 0.3, 0.3, soft);
        const Tensor tensor = uploaded(p, 1, height, width);
        for (const Box& area :
             {Box{0, 0, width, height}, Box{40, 5, 20, 30}, Box{10, 12, 15, 13}}) {
          const Uncertainty expected = uncertainty_of(p, width, area, block);
          Uncertainty found{-1, -1};
          expect(measure(tensor, area, found) && std::abs(found.whole - expected.whole) < 1e-9 &&
                     std::abs(found.patches - expected.patches) < 1e-9,
                 "uncertainty", "is another");
        }
      }
    }
    const Tensor nothing = uploaded(std::vector<float>(64, 0.0F), 1, 8, 8);
    Uncertainty found{-1, -1};
    expect(measure(nothing, {0, 0, 8, 8}, found) && found.whole == 1 && found.patches == 1,
           "uncertainty", "is not 1 where nothing is believed");
  }

  /// A large disc, a speck far from it, and a hole.
  static std::vector<float> dirty(int width, int height) {
    std::vector<float> p = disc(width, height, 0.3, 0.3, 3);
    const auto at = [&](int x, int y) -> float& {
      return p[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
               static_cast<std::size_t>(x)];
    };
    at(width - 5, 4) = 0.6F;
    at(width * 3 / 10, height / 2) = 0.95F;
    return p;
  }

  void filter_components() {
    const int width = 120;
    const int height = 80;
    for (const Box& area : {Box{0, 0, width, height}, Box{30, 10, 90, 60}}) {
      std::vector<float> wanted = dirty(width, height);
      const Tensor tensor = uploaded(wanted, 1, height, width);
      const ComponentSummary summary = filter_components_scalar(wanted, width, area);
      expect(area.left > 0 || (summary.removed > 0 && summary.filled > 0), "filter_components",
             "the test has nothing to remove or to fill");
      expect(backend_.filter_components(tensor.view, area, {}).ok() &&
                 downloaded(tensor.view) == wanted,
             "filter_components", "other components are removed or filled");
    }
  }

  void find_marked_subject() {
    const int width = 128;
    const int height = 96;
    // The mask covers the left half of an image of which the prediction shows the middle, and a far
    // corner of that, where the prediction has a speck that would be removed without a mask.
    std::vector<std::uint8_t> values(64 * 48, 0);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t x = i % 64;
      const std::size_t y = i / 64;
      if (x < 32 || (x >= 44 && x < 48 && y >= 12 && y < 16)) values[i] = 255;
    }
    const PlacedMask mask{{values, 64, 48}, 640, 480, {160, 120, 320, 240}};
    std::vector<float> p = disc(width, height, 0.3, 0.3, 3);
    const auto index = [&](int x, int y) {
      return static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
             static_cast<std::size_t>(x);
    };
    // Of the mask's columns 16 .. 47 and rows 12 .. 35 each is four network pixels.
    for (int y = 2; y < 14; ++y) {
      for (int x = 114; x < 126; ++x) p[index(x, y)] = 0.9F;
    }
    std::vector<float> wanted = p;
    constrain_scalar(wanted, mask.mask, mask.view, mask.width, mask.height, width, height);
    const Tensor tensor = uploaded(p, 1, height, width);
    expect(backend_.filter_components(tensor.view, {0, 0, width, height}, mask).ok(),
           "filter_components", "failed with a mask");
    const std::vector<float> given = downloaded(tensor.view);
    expect(given[index(120, 8)] > 0.5F, "filter_components", "what the mask marks is removed");
    bool close = true;
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        // Holes aside, which are filled.
        const float before = wanted[index(x, y)];
        if (before < 0.9F) close &= std::abs(given[index(x, y)] - before) <= 1e-4F;
      }
    }
    expect(close, "filter_components", "the mask does not constrain the prediction");
  }

  /// A reduced image is seen in what becomes of it under a matte of 1.
  void reduce() {
    Picture picture = draw(90, 70, 0);
    std::vector<std::uint8_t> wanted(40 * 30 * 4);
    reduce_scalar(picture.view(), 40, 30, wanted.data());
    const std::unique_ptr<JobImage> image = opened(picture.view());
    expect(backend_.reduce(*image, 40, 30).ok() && image->pixels.width == 40 &&
               image->pixels.height == 30,
           "reduce", "failed");
    const Tensor matte = uploaded(std::vector<float>(16, 1.0F), 1, 4, 4);
    std::unique_ptr<SolvedMatte> solved;
    MatteSummary summary;
    const NetworkInput spec{8, 8, {}, {1, 1, 1}};  // not of the matte's size: no guide
    expect(
        backend_.solve(*image, {0, 0, 40, 30}, {matte.view, {}, spec, TrainedOn::kMattes}, solved)
                .ok() &&
            solved->write({0, 0, 40, 30}, HiddenColour::kKeep, summary).ok(),
        "reduce", "the reduced image cannot be written");
    bool close = true;
    for (std::size_t i = 0; i < wanted.size(); i += 4) {
      close &= std::abs(picture.bytes[i + 3] - wanted[i + 3]) <= 1;
      // Premultiplied colours are within 1.
      for (std::size_t c = 0; c < 3; ++c) {
        close &= std::abs(picture.bytes[i + c] * picture.bytes[i + 3] -
                          wanted[i + c] * wanted[i + 3]) <= 2 * 255;
      }
    }
    expect(close, "reduce", "pixels are not those of the smaller image");
  }

  void solve(TrainedOn trained_on, int width, int height) {
    const NetworkInput spec{72, 64, {128, 120, 100}, {256, 220, 60}};
    const std::vector<float> p = disc(spec.width, spec.height, 0.5, 0.3, 6);
    Picture picture = draw(width, height, 8);
    Picture expected = picture;
    const Box part{4, 6, width - 5, height - 8};
    const Box roi{3, 2, part.width - 10, part.height - 4};

    const Tensor input = allocated(3, spec.height, spec.width);
    const Tensor prediction = uploaded(p, 1, spec.height, spec.width);
    std::unique_ptr<SolvedMatte> solved;
    MatteSummary summary;
    const std::unique_ptr<JobImage> image = opened(picture.view());
    const bool good =
        backend_.fill_input(*image, part, spec, input.view).ok() &&
        backend_.solve(*image, part, {prediction.view, input.view, spec, trained_on}, solved)
            .ok() &&
        solved->write(roi, HiddenColour::kClear, summary).ok();
    expect(good, "solve", "failed");
    if (!good) return;

    MatteSummary wanted = defined(part_of(expected.view(), part), trained_on, spec, p, roi,
                                  downloaded(input.view), downloaded(solved->alpha()));
    wanted.box.left += part.left;
    wanted.box.top += part.top;
    clear_around(expected.view(), {0, 0, width, height}, part, HiddenColour::kClear);
    std::size_t differing = 0;
    bool close = true;
    for (std::size_t i = 0; i < picture.bytes.size(); ++i) {
      const int difference = std::abs(picture.bytes[i] - expected.bytes[i]);
      close &= difference <= limits_.pixel;
      differing += difference != 0 ? 1 : 0;
    }
    expect(close && static_cast<double>(differing) <=
                        limits_.differing_share * static_cast<double>(picture.bytes.size()),
           "solve", "pixels are not those of the definition");
    const double more = static_cast<double>(summary.foreground_pixels - wanted.foreground_pixels);
    expect(summary.box == wanted.box && summary.opaque == wanted.opaque &&
               std::abs(more) <= limits_.differing_share * width * height,
           "solve", "the summary is not that of the pixels");
  }

  /// The result by the kernels' scalar versions; compares the alpha at the network's size too.
  MatteSummary defined(ImageView picture, TrainedOn trained_on, const NetworkInput& spec,
                       const std::vector<float>& p, const Box& roi, const std::vector<float>& input,
                       const std::vector<float>& alpha) {
    const HiddenColour hidden = HiddenColour::kClear;
    ThreadPool alone(0);
    Guide guide;
    guide.width = std::min(spec.width, picture.width);
    guide.height = std::min(spec.height, picture.height);
    std::vector<float> planes = input;
    std::vector<float> at_guide = p;
    if (guide.width == spec.width && guide.height == spec.height) {
      for (std::size_t c = 0; c < 3; ++c) {
        guide.scale[c] = spec.std[c] / 255;
        guide.offset[c] = spec.mean[c] / 255;
      }
    } else {
      // Not by the scalar versions, which are within a rounding of these: edges are compared
      // bytewise.
      planes.resize(3 * guide.size());
      fill_network_input(picture, {guide.width, guide.height, {0, 0, 0}, {255, 255, 255}},
                         planes.data(), alone);
      at_guide.resize(guide.size());
      resize_plane(p, spec.width, spec.height, guide.width, guide.height, at_guide, alone);
    }
    for (std::size_t c = 0; c < 3; ++c) guide.planes[c] = planes.data() + c * guide.size();
    const ColourSampling samples = trained_on == TrainedOn::kMasks
                                       ? sample_colours_scalar(guide, at_guide)
                                       : without_samples(guide, at_guide, alone);
    const DeblurredMatte matte = deblur_matte(guide, at_guide, samples, alone);
    bool close = alpha.size() == guide.size();
    for (std::size_t i = 0; close && i < guide.size(); ++i)
      close &= std::abs(alpha[i] - matte.alpha[i]) <= limits_.alpha;
    expect(close, "solve", "alpha at the network's size is not that of the definition");
    return refine_scalar(picture, guide, at_guide, samples, roi, hidden);
  }

  Backend& backend_;
  const ContractLimits limits_;
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> contract_faults(Backend& backend, const ContractLimits& limits) {
  return Contract(backend, limits).run();
}

}  // namespace cutout::test
