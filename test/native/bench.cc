#include <chrono>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "image/network_input.h"
#include "image/resample.h"
#include "matte/colour_sampling.h"
#include "matte/component_filter.h"
#include "matte/refine.h"
#include "pipeline/compose.h"
#include "registry.h"

namespace cutout::test {

namespace {

struct Image {
  int width;
  int height;
  std::vector<std::uint8_t> data;

  [[nodiscard]] ImageView view() {
    return {data.data(), width, height, static_cast<std::ptrdiff_t>(width) * 4};
  }
};

/// 4:3, opaque, noise in the colours.
Image make_image(double megapixels) {
  const int width = static_cast<int>(std::sqrt(megapixels * 1e6 * 4 / 3));
  const int height = width * 3 / 4;
  Image image{width, height, {}};
  image.data.resize(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 4);
  std::uint32_t state = 1;
  for (std::size_t i = 0; i < image.data.size(); ++i) {
    state = state * 1664525 + 1013904223;
    image.data[i] = i % 4 == 3 ? 255 : static_cast<std::uint8_t>(state >> 24);
  }
  return image;
}

/// A soft ellipse: about a third foreground, a band of a few samples between.
std::vector<float> make_alpha(int size) {
  std::vector<float> p(static_cast<std::size_t>(size) * static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double x = static_cast<double>(i % static_cast<std::size_t>(size)) / size - 0.5;
    const double y = static_cast<double>(i / static_cast<std::size_t>(size)) / size - 0.5;
    const double inside = 0.33 + 0.01 * std::sin(40 * std::atan2(y, x)) - std::hypot(x, y);
    p[i] = static_cast<float>(1 / (1 + std::exp(-inside * 400)));
  }
  return p;
}

/// The ellipse with specks around and holes in it.
std::vector<float> make_dirty_alpha(int size) {
  std::vector<float> p = make_alpha(size);
  std::uint32_t state = 7;
  for (float& value : p) {
    state = state * 1664525 + 1013904223;
    const float any = static_cast<float>(state >> 8) / 16777216.0F;
    if (any < 0.002F) value = value < 0.5F ? value + any * 20 : value - any * 20;
  }
  return p;
}

/// A disc with a soft ring that covers `share` of all network pixels.
std::vector<float> make_band(int size, double share) {
  std::vector<float> p(static_cast<std::size_t>(size) * static_cast<std::size_t>(size));
  const double width = share / (2 * 3.14159 * 0.3);
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double x = static_cast<double>(i % static_cast<std::size_t>(size)) / size - 0.5;
    const double y = static_cast<double>(i / static_cast<std::size_t>(size)) / size - 0.5;
    p[i] = static_cast<float>(
        std::clamp((0.3 + width / 2 - std::hypot(x, y)) / width * 0.96 + 0.02, 0.0, 1.0));
  }
  return p;
}

/// Gives the image an alpha of size x size values, each for a rectangle of pixels.
void set_alpha(Image& image, const std::vector<float>& alpha, int size) {
  for (int y = 0; y < image.height; ++y) {
    for (int x = 0; x < image.width; ++x) {
      const auto at = static_cast<std::size_t>(y) * size / image.height * size +
                      static_cast<std::size_t>(x) * size / image.width;
      image.view().row(y)[x * 4 + 3] = static_cast<std::uint8_t>(alpha[at] * 255);
    }
  }
}

/// Runs `work` on a fresh copy of the image `rounds` times; milliseconds of each.
std::vector<double> time(Image& image, int rounds, const std::function<void(ImageView)>& work) {
  const std::vector<std::uint8_t> original = image.data;
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) {
    image.data = original;
    const auto start = std::chrono::steady_clock::now();
    work(image.view());
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    times.push_back(took.count());
  }
  return times;
}

/// benchKernel(name, megapixels, threads, rounds): { pixels, ms: [...] }, the caller being one
/// thread.
Napi::Value bench_kernel(const Napi::CallbackInfo& info) {
  const std::string name = info[0].ToString().Utf8Value();
  Image image = make_image(info[1].ToNumber().DoubleValue());
  ThreadPool pool(info[2].ToNumber().Int32Value() - 1);
  const int rounds = info[3].ToNumber().Int32Value();
  constexpr int kSide = 1024;
  std::function<void(ImageView)> work;
  std::vector<float> floats;
  std::vector<float> guide_planes;
  Guide guide;
  ComposePlan plan;
  Image background{};
  if (name == "networkInput") {
    floats.resize(3 * kSide * kSide);
    const NetworkInput spec{kSide, kSide, {128, 128, 128}, {256, 256, 256}};
    work = [&, spec](ImageView view) { fill_network_input(view, spec, floats.data(), pool); };
  } else if (name == "filterComponents") {
    const std::vector<float> dirty = make_dirty_alpha(kSide);
    image = {kSide, kSide, {}};  // the map's size is the network's, not the image's
    work = [&, dirty](ImageView) {
      floats = dirty;
      filter_components(floats, kSide, {0, 0, kSide, kSide}, pool);
    };
  } else if (name.starts_with("refine")) {
    // A band of about 15, 5 or 40 % of the image, over colours like a network's input.
    const double band = name == "refine5" ? 0.05 : name == "refine40" ? 0.4 : 0.15;
    floats = make_band(kSide, band);
    guide_planes.resize(3 * kSide * kSide);
    fill_network_input(image.view(), {kSide, kSide, {0, 0, 0}, {255, 255, 255}},
                       guide_planes.data(), pool);
    guide.width = guide.height = kSide;
    for (std::size_t c = 0; c < 3; ++c) guide.planes[c] = guide_planes.data() + c * guide.size();
    work = [&](ImageView view) {
      const Box roi{0, 0, view.width, view.height};
      const ColourSampling samples = sample_colours(guide, floats, pool);
      write_edges(view, solve_edges(guide, floats, samples, pool), roi, HiddenColour::kClear, pool);
    };
  } else if (name == "reduceToHalf" || name == "reduceToTenth") {
    const double by = std::sqrt(name == "reduceToHalf" ? 2 : 10);
    work = [&, by](ImageView view) {
      reduce_in_place(view, static_cast<int>(view.width / by), static_cast<int>(view.height / by),
                      pool);
    };
  } else if (name.starts_with("compose")) {
    const Box whole{0, 0, image.width, image.height};
    plan = {image.width, image.height, whole, whole, {}, {}, {}};
    set_alpha(image, make_alpha(kSide), kSide);
    if (name == "composeColour") plan.colour = {30, 90, 200, 255};
    if (name == "composeImage") {
      background = make_image(info[1].ToNumber().DoubleValue());
      plan.background = background.view();
    }
    if (name == "composeShadow") {
      const auto sigma = static_cast<float>(image.width) * 0.66F * 0.02F;
      plan.shadow = DropShadow{0.5F, sigma, 0, static_cast<int>(sigma), 0};
    }
    if (name == "composeScaled") {
      plan.source = {image.width / 6, image.height / 6, image.width * 2 / 3, image.height * 2 / 3};
      plan.target = {image.width / 4, image.height / 4, image.width / 2, image.height / 2};
    }
    // A subject of a third of the side fills the canvas, or one hardly smaller does.
    if (name == "composeEnlarged") {
      plan.source = {image.width / 3, image.height / 3, image.width / 3, image.height / 3};
    }
    if (name == "composeEnlargedLittle") {
      plan.source = {16, 12, image.width - 32, image.height - 24};
    }
    work = [&](ImageView) { (void)compose(image.data, image.width, plan, pool); };
  } else {
    throw Napi::RangeError::New(info.Env(), "no kernel '" + name + "'");
  }
  const std::vector<double> times = time(image, rounds, work);
  auto ms = Napi::Array::New(info.Env(), times.size());
  for (std::size_t i = 0; i < times.size(); ++i) ms.Set(static_cast<std::uint32_t>(i), times[i]);
  auto result = Napi::Object::New(info.Env());
  result.Set("pixels", static_cast<double>(image.width) * image.height);
  result.Set("ms", ms);
  return result;
}

}  // namespace

CUTOUT_TEST_MODULE([](Napi::Env env, Napi::Object exports) {
  exports.Set("benchKernel", Napi::Function::New(env, bench_kernel));
});

}  // namespace cutout::test
