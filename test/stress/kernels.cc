// kernels_stress [rounds]: random images of random sizes, in memory of exactly their size, through
// the pixel kernels on four threads; results are compared with the scalar versions. Built for the
// sanitizers (CMakeLists.txt).
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "classify/features.h"
#include "core/cancel.h"
#include "image/enlarge.h"
#include "image/network_input.h"
#include "image/plane.h"
#include "image/resample.h"
#include "matte/colour_sampling.h"
#include "matte/component_filter.h"
#include "matte/mask_constraint.h"
#include "matte/refine.h"
#include "native/backend_contract.h"
#include "pipeline/compose.h"
#include "pipeline/cpu_backend.h"
#include "scalar/classify.h"
#include "scalar/image.h"
#include "scalar/matte.h"

using namespace cutout;
using namespace cutout::test;

namespace {

std::mt19937 random_bits(1);

int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_bits); }

struct Image {
  int width;
  int height;
  int stride;
  std::vector<std::uint8_t> data;

  Image(int w, int h, int padding) : width(w), height(h), stride(w * 4 + padding) {
    data.resize(static_cast<std::size_t>(stride) * static_cast<std::size_t>(h - 1) +
                static_cast<std::size_t>(w) * 4);
    const int kind = pick(0, 3);
    for (std::size_t i = 0; i < data.size(); ++i) {
      const bool alpha = i % static_cast<std::size_t>(stride) % 4 == 3;
      const int any = pick(0, 255);
      data[i] = static_cast<std::uint8_t>(!alpha || kind == 0 ? any : kind == 1 ? 0 : 255);
    }
  }
  ImageView view() { return {data.data(), width, height, stride}; }
};

Box box_in(int width, int height) {
  const int w = pick(1, width);
  const int h = pick(1, height);
  return {pick(0, width - w), pick(0, height - h), w, h};
}

void expect(bool good, const char* what, int round) {
  if (good) return;
  std::fprintf(stderr, "round %d: %s differs from its scalar version\n", round, what);
  std::exit(1);
}

bool close(const std::uint8_t* a, const std::uint8_t* b, std::size_t pixels, int bound) {
  for (std::size_t i = 0; i < pixels * 4; i += 4) {
    if (std::abs(a[i + 3] - b[i + 3]) > bound) return false;
    for (std::size_t c = i; c < i + 3; ++c) {
      if (std::abs(a[c] * a[i + 3] - b[c] * b[i + 3]) > bound * 255) return false;
    }
  }
  return true;
}

void check_network_input(ThreadPool& pool, int round) {
  Image image(pick(1, 700), pick(1, 90), pick(0, 9));
  const NetworkInput spec{pick(1, 40), pick(1, 40), {128, 128, 128}, {1, 1, 1}};
  const auto size =
      3 * static_cast<std::size_t>(spec.width) * static_cast<std::size_t>(spec.height);
  std::vector<float> fast(size);
  std::vector<float> scalar(size);
  fill_network_input(image.view(), spec, fast.data(), pool);
  fill_network_input_scalar(image.view(), spec, scalar.data());
  bool good = true;
  for (std::size_t i = 0; i < size; ++i) good &= std::abs(fast[i] - scalar[i]) <= 0.002F;
  expect(good, "network input", round);
}

void check_reduction(ThreadPool& pool, int round) {
  Image image(pick(1, 90), pick(1, 300), pick(0, 9));
  const int width = pick(1, image.width);
  const int height = pick(std::max(1, image.height / 2), image.height);
  const auto pixels = static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
  std::vector<std::uint8_t> scalar(pixels * 4);
  reduce_scalar(image.view(), width, height, scalar.data());
  reduce_in_place(image.view(), width, height, pool);
  expect(close(image.data.data(), scalar.data(), pixels, 1), "reduction", round);
}

void check_enlargement(ThreadPool& pool, int round) {
  Image image(pick(1, 90), pick(1, 200), pick(0, 9));
  const Box part = box_in(image.width, image.height);
  const auto shown = [&] {
    const ImageView all = image.view();
    return ImageView{all.row(part.top) + part.left * 4, part.width, part.height, all.stride};
  };
  const bool hardly = pick(0, 1) == 0;
  const int width = part.width + pick(0, hardly ? 2 : 300);
  const int height = part.height + pick(0, hardly ? 2 : 300);
  const auto pixels = static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
  std::vector<std::uint8_t> scalar(pixels * 4);
  enlarge_scalar(shown(), width, height, scalar.data());
  // Exactly the memory that image and result need.
  image.data.resize(std::max(image.data.size(), pixels * 4));
  enlarge_in_place(image.data, shown(), width, height, pool);
  expect(close(image.data.data(), scalar.data(), pixels, 1), "enlargement", round);
}

void check_components(ThreadPool& pool, int round) {
  const int width = pick(1, 70);
  const int height = pick(1, 200);
  std::vector<float> fast(static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
  const int kind = pick(0, 3);
  const auto patch = static_cast<std::size_t>(pick(1, 40));
  for (std::size_t i = 0; i < fast.size(); ++i) {
    const bool same = i % patch != 0 && kind != 3;
    fast[i] = same ? fast[i - 1] : kind == 0 ? 0 : static_cast<float>(pick(0, 100)) / 100;
  }
  std::vector<float> scalar = fast;
  const Box area = box_in(width, height);
  const ComponentSummary summary = filter_components(fast, width, area, pool);
  expect(summary == filter_components_scalar(scalar, width, area) && fast == scalar,
         "component filter", round);
}

void check_mask(ThreadPool& pool, int round) {
  const int width = pick(1, 70);
  const int height = pick(1, 600);
  std::vector<float> fast(static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
  for (float& value : fast) value = static_cast<float>(pick(0, 100)) / 100;
  const int mask_width = pick(1, 90);
  const int mask_height = pick(1, 90);
  std::vector<std::uint8_t> values(static_cast<std::size_t>(mask_width) *
                                   static_cast<std::size_t>(mask_height));
  const int patch = pick(1, 40);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool same = i > 0 && pick(0, patch) > 0;
    values[i] = same ? values[i - 1] : static_cast<std::uint8_t>(pick(0, 255));
  }
  const SubjectMask mask{values, mask_width, mask_height};
  const int image_width = pick(1, 300);
  const int image_height = pick(1, 300);
  const Box view = mask_view(mask, image_width, image_height);
  std::vector<float> scalar = fast;
  const NetworkMask at_network =
      resize_mask(mask, view, image_width, image_height, width, height, pool);
  constrain(fast, at_network, pool);
  constrain_scalar(scalar, mask, view, image_width, image_height, width, height);
  bool close = true;
  for (std::size_t i = 0; i < fast.size(); ++i) close &= std::abs(fast[i] - scalar[i]) <= 1e-4F;
  expect(close, "mask constraint", round);
  std::vector<float> filtered(fast.size(), 0.0F);
  restore_marked(filtered, fast, at_network, pool);
  bool kept = true;
  for (std::size_t i = 0; i < fast.size(); ++i) kept &= filtered[i] == 0 || filtered[i] == fast[i];
  expect(kept, "restored components", round);
}

void check_refinement(ThreadPool& pool, int round) {
  Image image(pick(1, 400), pick(1, 150), pick(0, 9));
  Image other = image;
  const int width = pick(1, 70);
  const int height = pick(1, 40);
  const auto size = static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
  std::vector<float> planes(3 * size);
  for (float& value : planes) value = static_cast<float>(pick(0, 255)) / 255;
  std::vector<float> p(size);
  const int kind = pick(0, 3);
  for (std::size_t i = 0; i < size; ++i) {
    const int x = static_cast<int>(i) % width;
    p[i] = kind == 0   ? 0.0F
           : kind == 1 ? 1.0F
           : kind == 2 ? static_cast<float>(pick(-20, 120)) / 100
                       : static_cast<float>(x - width / 2) / 4;
  }
  Guide guide;
  guide.width = width;
  guide.height = height;
  for (std::size_t c = 0; c < 3; ++c) guide.planes[c] = planes.data() + c * size;
  const ColourSampling sampling = sample_colours(guide, p, pool);
  const ColourSampling expected = sample_colours_scalar(guide, p);
  expect(std::equal(sampling.alpha.get(), sampling.alpha.get() + size, expected.alpha.get()) &&
             std::equal(sampling.sample_confidence.get(), sampling.sample_confidence.get() + size,
                        expected.sample_confidence.get()) &&
             std::equal(sampling.sampled_alpha.get(), sampling.sampled_alpha.get() + size,
                        expected.sampled_alpha.get()),
         "colour sampling", round);
  const ColourSampling samples =
      pick(0, 1) == 0 ? sample_colours(guide, p, pool) : without_samples(guide, p, pool);
  const Box roi = box_in(image.width, image.height);
  const HiddenColour hidden = pick(0, 1) == 0 ? HiddenColour::kClear : HiddenColour::kKeep;
  const MatteSummary fast =
      write_edges(image.view(), solve_edges(guide, p, samples, pool), roi, hidden, pool);
  const MatteSummary scalar = refine_scalar(other.view(), guide, p, samples, roi, hidden);
  expect(image.data == other.data && fast.box == scalar.box && fast.opaque == scalar.opaque &&
             fast.foreground_pixels == scalar.foreground_pixels,
         "refinement", round);
}

std::vector<float> floats(std::size_t count, int low, int high) {
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(pick(low * 100, high * 100)) / 100;
  return values;
}

bool close(std::span<const float> a, std::span<const float> b, float bound) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [bound](float x, float y) { return std::abs(x - y) <= bound; });
}

void check_plane(ThreadPool& pool, int round) {
  const int width = pick(1, 300);
  const int height = pick(1, 90);
  const int to_width = pick(1, 90);
  const int to_height = pick(1, 90);
  const auto size = static_cast<std::size_t>(to_width) * static_cast<std::size_t>(to_height);
  const std::vector<float> plane =
      floats(static_cast<std::size_t>(width) * static_cast<std::size_t>(height), 0, 1);
  std::vector<float> fast(size);
  std::vector<float> scalar(size);
  resize_plane(plane, width, height, to_width, to_height, fast, pool);
  resize_plane_scalar(plane, width, height, to_width, to_height, scalar);
  expect(close(fast, scalar, 1e-5F), "plane", round);
}

void check_pooling(ThreadPool& pool, int round) {
  const auto size = static_cast<std::size_t>(pick(1, 300));
  const std::vector<float> maps = floats(size * static_cast<std::size_t>(pick(1, 9)), -4, 4);
  const std::vector<float> weights = floats(size, 0, pick(0, 1));
  const std::vector<Pooled> fast = pool_maps(maps, weights, pool);
  const std::vector<Pooled> scalar = pool_maps_scalar(maps, weights);
  const auto same = [](const Pooled& a, const Pooled& b) {
    return a.max == b.max && std::abs(a.mean - b.mean) <= 4e-5F;
  };
  expect(std::equal(fast.begin(), fast.end(), scalar.begin(), scalar.end(), same), "pooling",
         round);
}

void check_statistics(ThreadPool& pool, int round) {
  Image image(pick(1, 700), pick(1, 60), pick(0, 9));
  const int side = pick(8, 200);
  const auto size = static_cast<std::size_t>(side / 2) * static_cast<std::size_t>(side / 2);
  const Thumbnail thumbnail =
      make_thumbnail(floats(3 * static_cast<std::size_t>(side) * static_cast<std::size_t>(side), -5,
                            pick(0, 1) * 265),
                     side);
  Statistics fast{};
  alpha_statistics(image.view(), fast);
  Statistics scalar = fast;
  border_statistics(thumbnail, fast);
  border_statistics_scalar(thumbnail, scalar);
  expect(fast == scalar, "statistics", round);
  const std::vector<float> weights = floats(size, 0, pick(0, 1));
  const Regions regions = region_statistics(thumbnail, weights, pool);
  const Regions slow = region_statistics_scalar(thumbnail, weights);
  expect(close(regions.inside, slow.inside, 1e-5F) && close(regions.outside, slow.outside, 1e-5F),
         "regions", round);
}

void check_features(ThreadPool& pool, int round) {
  const DetectorShape shape{pick(1, 9), pick(1, 40), pick(1, 9), pick(1, 20)};
  const auto maps = [](int count, int side, int high) {
    return floats(static_cast<std::size_t>(count) * static_cast<std::size_t>(side) *
                      static_cast<std::size_t>(side),
                  0, high);
  };
  const std::vector<float> heatmaps = maps(shape.classes, shape.heatmap_side, 1);
  const std::vector<float> feature_maps = maps(shape.channels, shape.feature_map_side, 9);
  const int width = pick(1, 100);
  const int height = pick(1, 100);
  const std::vector<float> alpha =
      floats(static_cast<std::size_t>(width) * static_cast<std::size_t>(height), 0, pick(0, 1));
  std::vector<float> features(feature_count(shape), -1);
  const ImageStatistics image{{}, make_thumbnail(maps(3, 16, 255), 16)};
  join_features(shape, heatmaps, feature_maps, image, {alpha, width, height}, pool, features);
  const bool good =
      std::all_of(features.begin(), features.end(), [](float v) { return v >= 0 && v <= 9.001F; });
  expect(good, "features", round);
}

void check_composition(ThreadPool& pool, int round) {
  Image image(pick(1, 400), pick(1, 120), 0);
  ComposePlan plan;
  plan.width = pick(1, 400);
  plan.height = pick(1, 150);
  plan.source = box_in(image.width, image.height);
  plan.target = box_in(plan.width, plan.height);
  if (pick(0, 1) == 0) {  // moved, not scaled
    plan.target.width = plan.source.width = std::min(plan.target.width, plan.source.width);
    plan.target.height = plan.source.height = std::min(plan.target.height, plan.source.height);
  }
  const std::size_t pixels =
      static_cast<std::size_t>(plan.width) * static_cast<std::size_t>(plan.height);
  image.data.resize(std::max(image.data.size(), pixels * 4));
  std::vector<std::uint8_t> scalar = image.data;
  const Box placed = compose(scalar, image.width, plan, pool).box;

  Image background(plan.width, plan.height, pick(0, 9));
  if (pick(0, 1) == 0) plan.background = background.view();
  if (pick(0, 1) == 0) plan.colour = {7, 70, 170, static_cast<std::uint8_t>(pick(0, 255))};
  const bool shaded = pick(0, 1) == 0;
  if (shaded) {
    plan.shadow =
        DropShadow{static_cast<float>(pick(0, 10)) / 10, static_cast<float>(pick(1, 150)) / 10,
                   pick(-50, 50), pick(-50, 50), pick(0, 20)};
  }
  compose_scalar({scalar.data(), plan.width, plan.height, plan.width * 4}, placed, plan);
  (void)compose(image.data, image.width, plan, pool);
  expect(close(image.data.data(), scalar.data(), pixels, shaded ? 4 : 1), "composition", round);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 200;
  ThreadPool pool(3);
  for (int round = 0; round < rounds; ++round) {
    check_network_input(pool, round);
    check_reduction(pool, round);
    check_enlargement(pool, round);
    check_components(pool, round);
    check_mask(pool, round);
    check_refinement(pool, round);
    check_plane(pool, round);
    check_pooling(pool, round);
    check_statistics(pool, round);
    check_features(pool, round);
    check_composition(pool, round);
  }
  for (const std::string& fault : cutout::test::contract_faults(*make_cpu_backend(pool)))
    expect(false, fault.c_str(), 0);
  std::printf("%d rounds\n", rounds);
}
