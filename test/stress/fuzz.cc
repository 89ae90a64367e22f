// fuzz_stress SECONDS SEED [CORPUS | -] [CASES]: mutated images and random options through
// everything that handles a request's pixels, and through the memory of the networks. Case n has
// the seed SEED + n and depends on nothing else: `fuzz_stress 0 THAT_SEED CORPUS 1` repeats it.
// Built for the sanitizers (npm run fuzz); prints the seed of a case in which one of them or a
// check here reports an error, or which does not end.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "classify/features.h"
#include "classify/statistics.h"
#include "classify/subject_head.h"
#include "core/large_memory.h"
#include "image/network_input.h"
#include "image/resample.h"
#include "matte/component_filter.h"
#include "matte/uncertainty.h"
#include "pipeline/compose.h"
#include "pipeline/cpu_backend.h"
#include "png/encode.h"
#include "scalar/png.h"

using namespace cutout;

namespace {

constexpr unsigned kCaseSeconds = 120;  // enough under a sanitizer on a busy machine

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "fuzz_stress: %s\n", what);
  std::_Exit(1);
}

void expect(bool good, const char* what) {
  if (!good) fail(what);
}

struct Raw {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> rgba;  // rows without padding
};

/// Images (PAM, four channels) in a folder, by name.
std::vector<Raw> read_corpus(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".pam") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<Raw> images;
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    Raw raw;
    std::string word;
    while (in >> word && word != "ENDHDR") {
      if (word == "WIDTH") in >> raw.width;
      if (word == "HEIGHT") in >> raw.height;
    }
    in.ignore(1);
    raw.rgba.resize(static_cast<std::size_t>(raw.width) * static_cast<std::size_t>(raw.height) * 4);
    in.read(reinterpret_cast<char*>(raw.rgba.data()),
            static_cast<std::streamsize>(raw.rgba.size()));
    if (!in || raw.rgba.empty()) {
      std::fprintf(stderr, "fuzz_stress: %s cannot be read\n", file.c_str());
      std::exit(2);
    }
    images.push_back(std::move(raw));
  }
  return images;
}

/// The random numbers of a case.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : bits_(seed) {}
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(bits_); }
  bool one_in(int n) { return pick(1, n) == 1; }
  float real(float low, float high) {
    return std::uniform_real_distribution<float>(low, high)(bits_);
  }
  std::uint8_t byte() { return static_cast<std::uint8_t>(bits_()); }
  /// From -bound to bound, or an extreme value of int.
  int any_int(int bound) {
    constexpr std::array<int, 8> kEnds{INT_MIN, INT_MIN + 1, -1,          0,
                                       1,       65'536,      INT_MAX - 1, INT_MAX};
    return one_in(3) ? kEnds[static_cast<std::size_t>(pick(0, 7))] : pick(-bound, bound);
  }
  float any_float() {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    constexpr std::array<float, 8> kEnds{
        std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity, -0.0F, 0, 1, 1e30F, -1e30F};
    return one_in(3) ? kEnds[static_cast<std::size_t>(pick(0, 7))] : real(-2, 3);
  }
  Box box_in(int width, int height) {
    const int w = pick(1, width);
    const int h = pick(1, height);
    return {pick(0, width - w), pick(0, height - h), w, h};
  }
  Box any_box(int bound) {
    return {any_int(bound), any_int(bound), any_int(bound), any_int(bound)};
  }

 private:
  std::mt19937_64 bits_;
};

int side_of(Dice& dice) { return dice.one_in(8) ? dice.pick(1, 3) : dice.pick(1, 260); }

/// A part of an image of the corpus, noise or one colour.
Raw begin_image(Dice& dice, const std::vector<Raw>& corpus) {
  Raw raw;
  raw.width = side_of(dice);
  raw.height = side_of(dice);
  const auto row = static_cast<std::size_t>(raw.width) * 4;
  raw.rgba.resize(row * static_cast<std::size_t>(raw.height), dice.byte());
  if (!corpus.empty() && !dice.one_in(4)) {
    const Raw& from =
        corpus[static_cast<std::size_t>(dice.pick(0, static_cast<int>(corpus.size()) - 1))];
    raw.width = std::min(raw.width, from.width);
    raw.height = std::min(raw.height, from.height);
    const int left = dice.pick(0, from.width - raw.width);
    const int top = dice.pick(0, from.height - raw.height);
    const auto used = static_cast<std::size_t>(raw.width) * 4;
    raw.rgba.resize(used * static_cast<std::size_t>(raw.height));
    for (int y = 0; y < raw.height; ++y) {
      const auto at = (static_cast<std::size_t>(top + y) * static_cast<std::size_t>(from.width) +
                       static_cast<std::size_t>(left)) *
                      4;
      std::memcpy(raw.rgba.data() + static_cast<std::size_t>(y) * used, from.rgba.data() + at,
                  used);
    }
  } else if (dice.one_in(2)) {
    for (std::uint8_t& byte : raw.rgba) byte = dice.byte();
  }
  return raw;
}

void mutate(Dice& dice, Raw& raw) {
  const int size = static_cast<int>(raw.rgba.size());
  const auto at = [&] { return static_cast<std::size_t>(dice.pick(0, size - 1)); };
  for (int times = dice.pick(0, 5); times > 0; --times) {
    switch (dice.pick(0, 4)) {
      case 0:  // single bytes
        for (int i = dice.pick(1, 200); i > 0; --i) raw.rgba[at()] = dice.byte();
        break;
      case 1: {  // a stretch copied to another place
        const std::size_t from = at();
        const std::size_t to = at();
        const auto length =
            static_cast<std::size_t>(dice.pick(1, size - static_cast<int>(std::max(from, to))));
        std::memmove(raw.rgba.data() + to, raw.rgba.data() + from, length);
        break;
      }
      case 2: {  // a stretch of one value
        const std::size_t from = at();
        const auto length = static_cast<std::size_t>(dice.pick(1, size - static_cast<int>(from)));
        std::memset(raw.rgba.data() + from, dice.one_in(2) ? 255 : dice.byte(), length);
        break;
      }
      case 3: {  // one alpha everywhere
        const std::uint8_t alpha = dice.one_in(3) ? dice.byte() : 255;
        for (std::size_t i = 3; i < raw.rgba.size(); i += 4) raw.rgba[i] = alpha;
        break;
      }
      default:  // noise in all low bits
        for (std::uint8_t& byte : raw.rgba) byte ^= static_cast<std::uint8_t>(dice.pick(0, 3));
    }
  }
}

/// A network's prediction: the image's alpha or brightness, a slope, noise or a constant.
std::vector<float> prediction_of(Dice& dice, const Raw& raw, int width, int height) {
  std::vector<float> p(static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
  const int kind = dice.pick(0, 5);
  const std::size_t channel = dice.one_in(2) ? 3 : 0;
  const float slope = dice.real(-0.3F, 0.3F);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      float& value = p[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                       static_cast<std::size_t>(x)];
      const auto u = static_cast<std::size_t>(x) * static_cast<std::size_t>(raw.width) /
                     static_cast<std::size_t>(width);
      const auto v = static_cast<std::size_t>(y) * static_cast<std::size_t>(raw.height) /
                     static_cast<std::size_t>(height);
      if (kind <= 2) {
        value = static_cast<float>(
                    raw.rgba[(v * static_cast<std::size_t>(raw.width) + u) * 4 + channel]) /
                255;
      } else if (kind == 3) {
        value = 0.5F + slope * static_cast<float>(x + y - width / 2);
      } else if (kind == 4) {
        value = dice.real(0, 1);
      } else {
        value = slope > 0 ? 1.0F : 0.0F;
      }
    }
  }
  return p;
}

/// Rows with padding, and memory of exactly the size that the view states.
struct Padded {
  std::vector<std::uint8_t> bytes;
  ImageView view;

  Padded(Dice& dice, const Raw& raw) {
    const std::ptrdiff_t stride = raw.width * 4 + (dice.one_in(2) ? 0 : dice.pick(1, 9));
    bytes.resize(static_cast<std::size_t>(stride) * static_cast<std::size_t>(raw.height - 1) +
                 static_cast<std::size_t>(raw.width) * 4);
    view = {bytes.data(), raw.width, raw.height, stride};
    for (int y = 0; y < raw.height; ++y) {
      std::memcpy(view.row(y), raw.rgba.data() + static_cast<std::ptrdiff_t>(y) * raw.width * 4,
                  static_cast<std::size_t>(raw.width) * 4);
    }
  }
};

/// Checks the invariants of every matte.
void check_matte(ConstImageView image, const MattePlan& plan, const MatteSummary& summary) {
  const Box roi = clip(plan.roi, {nullptr, image.width, image.height, 0});
  for (int y = 0; y < image.height; ++y) {
    const std::uint8_t* row = image.row(y);
    for (int x = 0; x < image.width; ++x) {
      const std::uint8_t* pixel = row + static_cast<std::ptrdiff_t>(x) * 4;
      if (pixel[3] == 0) {
        expect(plan.hidden_colour == HiddenColour::kKeep || (pixel[0] | pixel[1] | pixel[2]) == 0,
               "colour under alpha 0");
        continue;
      }
      const auto inside = [&](const Box& box) {
        return x >= box.left && x < box.left + box.width && y >= box.top &&
               y < box.top + box.height;
      };
      expect(inside(roi), "alpha outside the region of interest");
      expect(pixel[3] < 128 || inside(summary.box), "subject outside its box");
    }
  }
}

/// The stages of make_matte (pipeline/matte.h) with an arbitrary prediction of the network.
void cut_out(Dice& dice, Raw& raw, ThreadPool& pool) {
  Padded padded(dice, raw);
  const NetworkInput input{dice.pick(1, 90), dice.pick(1, 90), {128, 120, 100}, {256, 220, 60}};
  std::vector<float> planes(3 * static_cast<std::size_t>(input.width) *
                            static_cast<std::size_t>(input.height));
  fill_network_input(padded.view, input, planes.data(), pool);
  const bool same = !dice.one_in(4);
  const int width = same ? input.width : dice.pick(1, 90);
  const int height = same ? input.height : dice.pick(1, 90);
  std::vector<float> alpha = prediction_of(dice, raw, width, height);
  for (int i = dice.one_in(3) ? dice.pick(1, 40) : 0; i > 0; --i) {
    alpha[static_cast<std::size_t>(dice.pick(0, width * height - 1))] = dice.any_float();
  }
  const bool numbers =
      std::all_of(alpha.begin(), alpha.end(), [](float v) { return std::isfinite(v); });
  const NetworkOutput output = dice.one_in(3) ? NetworkOutput::kLogit : NetworkOutput::kProbability;
  Uncertainty ignored;
  expect(make_cpu_backend(pool)
                 ->to_probability(host_tensor(alpha, 1, height, width), output,
                                  {0, 0, width, height}, ignored)
                 .ok() == numbers,
         "a prediction that is not finite was taken");
  if (!numbers) {
    for (float& value : alpha) value = std::isnan(value) ? 0.0F : value;
  }

  MattePlan plan;
  plan.width = dice.one_in(3) ? raw.width : dice.pick(1, raw.width);
  plan.height = dice.one_in(3) ? raw.height : dice.pick(1, raw.height);
  plan.hidden_colour = dice.one_in(2) ? HiddenColour::kKeep : HiddenColour::kClear;
  plan.roi =
      dice.one_in(2) ? Box{0, 0, plan.width, plan.height} : dice.box_in(plan.width, plan.height);
  const Box area = network_area(plan.roi, plan.width, plan.height, width, height);
  static_cast<void>(uncertainty(alpha, width, area, pool));
  filter_components(alpha, width, area, pool);

  ImageView reduced = padded.view;
  if (plan.width != raw.width || plan.height != raw.height) {
    reduce_in_place(padded.view, plan.width, plan.height, pool);
    reduced = {padded.bytes.data(), plan.width, plan.height,
               static_cast<std::ptrdiff_t>(plan.width) * 4};
  }
  if (dice.one_in(8)) plan.roi = dice.any_box(300);  // clipped by both kernels
  const Prediction prediction{host_tensor(alpha, 1, height, width),
                              host_tensor(planes, 3, input.height, input.width), input};
  MatteSummary summary;
  expect(solve_matte(reduced, {0, 0, reduced.width, reduced.height}, prediction, pool)
             ->write(plan.roi, plan.hidden_colour, summary)
             .ok(),
         "a matte that is not written");
  check_matte(reduced, plan, summary);

  Raw result{plan.width, plan.height, {}};
  for (int y = 0; y < plan.height; ++y) {
    result.rgba.insert(result.rgba.end(), reduced.row(y), reduced.row(y) + plan.width * 4);
  }
  raw = std::move(result);
}

/// A composition by a plan within the limits (compose.h).
void lay_out(Dice& dice, Raw& raw, ThreadPool& pool) {
  ComposePlan plan;
  plan.width = side_of(dice);
  plan.height = side_of(dice);
  plan.source = dice.box_in(raw.width, raw.height);
  plan.target = dice.box_in(plan.width, plan.height);
  if (dice.one_in(2)) {  // moved, not scaled
    plan.target.width = plan.source.width = std::min(plan.target.width, plan.source.width);
    plan.target.height = plan.source.height = std::min(plan.target.height, plan.source.height);
  }
  Raw behind{plan.width, plan.height, {}};
  behind.rgba.resize(static_cast<std::size_t>(plan.width) * static_cast<std::size_t>(plan.height) *
                     4);
  for (std::uint8_t& byte : behind.rgba) byte = dice.byte();
  const Padded background(dice, behind);
  if (dice.one_in(2)) plan.background = background.view;
  if (dice.one_in(2)) plan.colour = {dice.byte(), dice.byte(), dice.byte(), dice.byte()};
  if (dice.one_in(2)) {
    plan.shadow = DropShadow{dice.real(0, 1), dice.one_in(6) ? 4096 : dice.real(0.1F, 30),
                             dice.one_in(6) ? 65'535 : dice.pick(-90, 90), dice.pick(-90, 90),
                             dice.pick(0, 40)};
  }
  std::vector<std::uint8_t> buffer = raw.rgba;
  buffer.resize(std::max(buffer.size(), behind.rgba.size()));
  (void)compose(buffer, raw.width, plan, pool);
  raw.width = plan.width;
  raw.height = plan.height;
  buffer.resize(static_cast<std::size_t>(plan.width) * static_cast<std::size_t>(plan.height) * 4);
  raw.rgba = std::move(buffer);
}

std::vector<std::uint8_t> write_png(Dice& dice, const Raw& raw, ThreadPool& pool) {
  const Padded padded(dice, raw);
  PngOptions options;
  options.alpha_only = dice.one_in(3);
  options.effort = dice.pick(1, 9);
  options.icc.resize(static_cast<std::size_t>(dice.one_in(3) ? dice.pick(1, 4000) : 0));
  for (std::uint8_t& byte : options.icc) byte = dice.byte();
  if (dice.one_in(2)) {
    options.pixels_per_metre = {static_cast<std::uint32_t>(dice.any_int(9999)),
                                static_cast<std::uint32_t>(dice.any_int(9999))};
  }
  const std::vector<std::uint8_t> file = encode_png(padded.view, options, pool);
  constexpr std::array<std::uint8_t, 8> kSignature{137, 80, 78, 71, 13, 10, 26, 10};
  expect(file.size() > kSignature.size() &&
             file.size() <= test::png_bound(raw.width, raw.height, options) &&
             std::equal(kSignature.begin(), kSignature.end(), file.begin()),
         "encoding");
  return file;
}

/// The classifier of subject types with random outputs of the detector and a random head.
void classify(Dice& dice, const Raw& raw, ThreadPool& pool) {
  const Padded padded(dice, raw);
  const int side = dice.pick(8, 64);
  std::vector<float> planes(3 * static_cast<std::size_t>(side) * static_cast<std::size_t>(side));
  fill_network_input(padded.view, {side, side, {0, 0, 0}, {1, 1, 1}}, planes.data(), pool);
  ImageStatistics image;
  alpha_statistics(padded.view, image.statistics);
  image.thumbnail = make_thumbnail(planes, side);
  border_statistics(image.thumbnail, image.statistics);
  const DetectorShape shape{dice.pick(1, 9), dice.pick(1, 30), dice.pick(1, 9), dice.pick(1, 20)};
  const auto maps = [&](int count, int map_side, float most) {
    std::vector<float> values(static_cast<std::size_t>(count) * static_cast<std::size_t>(map_side) *
                              static_cast<std::size_t>(map_side));
    for (float& value : values) value = dice.real(0, most);
    return values;
  };
  const std::vector<float> heatmaps = maps(shape.classes, shape.heatmap_side, 1);
  const std::vector<float> feature_maps = maps(shape.channels, shape.feature_map_side, 1e6F);
  const int width = dice.pick(1, 90);
  const int height = dice.pick(1, 90);
  std::vector<float> alpha = prediction_of(dice, raw, width, height);
  for (float& value : alpha) value = std::clamp(value, 0.0F, 1.0F);
  std::vector<float> features(feature_count(shape));
  join_features(shape, heatmaps, feature_maps, image, {alpha, width, height}, pool, features);

  HeadWeights weights;
  weights.inputs = features.size();
  weights.hidden = static_cast<std::size_t>(dice.one_in(3) ? 0 : dice.pick(1, 20));
  const std::size_t rows = weights.hidden == 0 ? kSubjectCount : weights.hidden;
  const auto fill = [&](std::vector<float>& values, std::size_t count) {
    values.resize(count);
    for (float& value : values) value = dice.real(0.1F, 2);
  };
  const auto fill_whole = [&](std::vector<std::int8_t>& values, std::size_t count) {
    values.resize(count);
    for (std::int8_t& value : values) value = static_cast<std::int8_t>(dice.byte());
  };
  fill(weights.mean, weights.inputs);
  fill(weights.scale, weights.inputs);
  fill_whole(weights.first, rows * weights.inputs);
  fill(weights.first_scale, rows);
  fill(weights.first_bias, rows);
  if (weights.hidden > 0) {
    fill_whole(weights.second, kSubjectCount * weights.hidden);
    fill(weights.second_scale, kSubjectCount);
    fill(weights.second_bias, kSubjectCount);
  }
  const bool broken = dice.one_in(3);
  if (broken) {
    if (dice.one_in(2)) {
      weights.first.resize(weights.first.size() - 1);
    } else {
      weights.mean[0] = std::numeric_limits<float>::quiet_NaN();
    }
  }
  Head head;
  expect(Head::make(std::move(weights), head).ok() == !broken, "a head that does not fit");
  if (broken) return;
  const Subject subject = head.apply(features);
  float sum = 0;
  for (const float probability : subject.probabilities) sum += probability;
  expect(subject.type < kSubjectCount && std::abs(sum - 1) < 1e-3F, "probabilities");
}

/// Blocks of all sizes: inside the region, intact, never shared.
void use_region(Dice& dice) {
  using cutout::Region;
  const std::size_t preferred = Region::kPage * static_cast<std::size_t>(dice.pick(1, 2000));
  const auto region = Region::reserve(preferred, Region::kPage);
  if (!region) return;
  struct Held {
    std::uint8_t* data;
    std::size_t bytes;
    std::uint8_t mark;
  };
  std::vector<Held> held;
  const auto free_block = [&](std::size_t i) {
    const Held block = held[i];
    held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
    for (const std::size_t at : {std::size_t{0}, block.bytes / 2, block.bytes - 1}) {
      expect(block.data[at] == block.mark, "a region gave memory out twice");
    }
    region->free(block.data);
  };
  for (int i = dice.pick(1, 120); i > 0; --i) {
    const std::size_t bytes =
        Region::kPage *
        static_cast<std::size_t>(dice.one_in(5) ? dice.pick(1, 2100) : dice.pick(1, 60));
    if (void* const block = region->allocate(bytes)) {
      expect(region->holds(block), "a block outside its region");
      auto* const data = static_cast<std::uint8_t*>(block);
      const std::uint8_t mark = dice.byte();
      data[0] = data[bytes / 2] = data[bytes - 1] = mark;
      held.push_back({data, bytes, mark});
    }
    while (!held.empty() && dice.one_in(2)) {
      free_block(static_cast<std::size_t>(dice.pick(0, static_cast<int>(held.size()) - 1)));
    }
    if (dice.one_in(10)) region->release();
  }
  while (!held.empty()) free_block(held.size() - 1);
  expect(region->idle(), "a region that is never idle");
  region->release();
  expect(region->resident_bytes() == 0, "a released region keeps pages");
}

/// One case; returns the PNG file, for comparison.
std::vector<std::uint8_t> one_case(std::uint64_t seed, const std::vector<Raw>& corpus,
                                   ThreadPool& pool) {
  Dice dice(seed);
  Raw raw = begin_image(dice, corpus);
  mutate(dice, raw);
  if (dice.one_in(4)) classify(dice, raw, pool);
  if (dice.one_in(20)) use_region(dice);
  if (!dice.one_in(5)) cut_out(dice, raw, pool);
  if (!dice.one_in(4)) lay_out(dice, raw, pool);
  return write_png(dice, raw, pool);
}

/// Runs cases from seed `first` on, at least `least` of them and for at least `length`; `current`
/// is the seed of the running case.
void run_cases(std::uint64_t& current, std::uint64_t first, std::uint64_t least,
               std::chrono::seconds length, const std::vector<Raw>& corpus) {
  ThreadPool alone(0);
  ThreadPool many(3);
  const auto end = std::chrono::steady_clock::now() + length;
  std::uint64_t done = 0;
  for (; done < least || std::chrono::steady_clock::now() < end; ++done) {
    current = first + done;
    alarm(kCaseSeconds);
    const std::vector<std::uint8_t> file = one_case(current, corpus, many);
    if (current % 8 == 0) {
      expect(one_case(current, corpus, alone) == file, "the result depends on threads");
    }
  }
  alarm(0);
  std::printf("%llu cases from seed %llu on, no findings\n", static_cast<unsigned long long>(done),
              static_cast<unsigned long long>(first));
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) {
    std::fprintf(stderr, "usage: fuzz_stress SECONDS SEED [CORPUS | -] [CASES]\n");
    return 2;
  }
  const int seconds = std::atoi(arguments[1]);
  const std::uint64_t first = std::strtoull(arguments[2], nullptr, 10);
  const std::string folder = count > 3 ? arguments[3] : "-";
  const std::uint64_t least = count > 4 ? std::strtoull(arguments[4], nullptr, 10) : 1;
  const std::vector<Raw> corpus = folder == "-" ? std::vector<Raw>{} : read_corpus(folder);

  // Cases run in a child process, so that this one can report the case that crashed.
  auto* const shared = static_cast<std::uint64_t*>(mmap(
      nullptr, sizeof(std::uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (shared == MAP_FAILED) fail("no memory to share");
  const pid_t child = fork();
  if (child < 0) fail("no second process");
  if (child == 0) {
    run_cases(*shared, first, least, std::chrono::seconds(seconds), corpus);
    return 0;
  }
  int status = 0;
  if (waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return 0;
  if (WIFSIGNALED(status)) {
    std::fprintf(
        stderr, "fuzz_stress: %s\n",
        WTERMSIG(status) == SIGALRM ? "the case does not end" : strsignal(WTERMSIG(status)));
  }
  std::fprintf(stderr, "fuzz_stress: seed %llu\n", static_cast<unsigned long long>(*shared));
  return 1;
}
