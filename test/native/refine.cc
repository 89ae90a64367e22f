#include "matte/refine.h"

#include "image/plane.h"
#include "images.h"
#include "matte/blur.h"
#include "matte/colour.h"
#include "matte/correct.h"
#include "matte/local_model.h"
#include "matte/sharpen.h"
#include "pipeline/edges.h"
#include "registry.h"

namespace cutout::test {

namespace {

/// { planes: Float32Array of 3 * width * height, width, height, scale, offset, blur, settled?,
/// told? }.
Guide to_guide(const Napi::Value& value) {
  const auto object = value.As<Napi::Object>();
  const auto number = [&](const char* name) { return object.Get(name).ToNumber(); };
  Guide guide;
  guide.width = number("width").Int32Value();
  guide.height = number("height").Int32Value();
  const auto planes = to_floats(object.Get("planes"));
  if (guide.width < 1 || guide.height < 1 || planes.size() != 3 * guide.cells()) {
    throw Napi::RangeError::New(value.Env(), "guide does not fit its planes");
  }
  for (std::size_t c = 0; c < 3; ++c) guide.planes[c] = planes.data() + c * guide.cells();
  guide.scale.fill(number("scale").FloatValue());
  guide.offset.fill(number("offset").FloatValue());
  guide.blur = number("blur").FloatValue();
  if (object.Get("settled").IsTypedArray()) {
    const auto settled = to_floats(object.Get("settled"));
    const auto told = to_floats(object.Get("told"));
    if (settled.size() != guide.cells() || told.size() != guide.cells()) {
      throw Napi::RangeError::New(value.Env(), "guide does not fit its settled cells");
    }
    guide.settled = settled.data();
    guide.told = told.data();
  }
  return guide;
}

Napi::Object from_summary(Napi::Env env, const MatteSummary& summary) {
  auto result = Napi::Object::New(env);
  result.Set("box", from_box(env, summary.box));
  result.Set("foregroundPixels", static_cast<double>(summary.foreground_pixels));
  result.Set("opaque", summary.opaque);
  return result;
}

/// refineMatte(image, guide, p, roi, 'clear' | 'keep', threads), threads -1: scalar.
Napi::Value refine_matte_js(const Napi::CallbackInfo& info) {
  const ImageView image = to_image(info[0]);
  const Guide guide = to_guide(info[1]);
  const auto p = to_floats(info[2]);
  const Box roi = to_box(info[3]);
  const HiddenColour hidden =
      info[4].ToString().Utf8Value() == "keep" ? HiddenColour::kKeep : HiddenColour::kClear;
  const int threads = info[5].ToNumber().Int32Value();
  if (threads < 0) {
    return from_summary(info.Env(), refine_matte_scalar(image, guide, p, roi, hidden));
  }
  ThreadPool pool(threads);
  return from_summary(info.Env(), refine_matte(image, guide, p, roi, hidden, pool));
}

/// writeEdges(image, guide, p, 'on' | 'off', threads): the answer as requests get it.
Napi::Value write_edges_js(const Napi::CallbackInfo& info) {
  const ImageView image = to_image(info[0]);
  const Guide guide = to_guide(info[1]);
  const auto p = to_floats(info[2]);
  NetworkInput spec{guide.width, guide.height, {}, {}};
  for (std::size_t c = 0; c < 3; ++c) {
    spec.mean[c] = guide.offset[c] * 255;
    spec.std[c] = guide.scale[c] * 255;
  }
  MattePlan plan;
  plan.width = image.width;
  plan.height = image.height;
  plan.roi = {0, 0, image.width, image.height};
  plan.refinement = info[3].ToString().Utf8Value() == "off" ? Refinement::kOff : Refinement::kOn;
  ThreadPool pool(info[4].ToNumber().Int32Value());
  const NetworkAnswer answer{
      {guide.planes[0], 3 * guide.cells()}, spec, p, guide.width, guide.height};
  return from_summary(info.Env(), write_edges(image, answer, plan, pool));
}

/// correctAlpha(guide, p, threads): { alpha, settled, told }.
Napi::Value correct_alpha_js(const Napi::CallbackInfo& info) {
  const Guide guide = to_guide(info[0]);
  const auto p = to_floats(info[1]);
  const int threads = info[2].ToNumber().Int32Value();
  ThreadPool pool(std::max(threads, 0));
  const CorrectedAlpha corrected =
      threads < 0 ? correct_alpha_scalar(guide, p) : correct_alpha(guide, p, pool);
  auto result = Napi::Object::New(info.Env());
  const auto set = [&](const char* name, const float* plane) {
    result.Set(name, from_floats(info.Env(), {plane, plane + guide.cells()}));
  };
  set("alpha", corrected.alpha.get());
  set("settled", corrected.settled.get());
  set("told", corrected.told.get());
  return result;
}

/// sharpenMatte(guide, p, enlargement, threads): { alpha, trust, unsure }.
Napi::Value sharpen_matte_js(const Napi::CallbackInfo& info) {
  const Guide guide = to_guide(info[0]);
  const auto p = to_floats(info[1]);
  const float enlargement = info[2].ToNumber().FloatValue();
  const int threads = info[3].ToNumber().Int32Value();
  ThreadPool pool(std::max(threads, 0));
  const SharpMatte matte = threads < 0 ? sharpen_matte_scalar(guide, p, enlargement)
                                       : sharpen_matte(guide, p, enlargement, pool);
  auto result = Napi::Object::New(info.Env());
  const auto set = [&](const char* name, const auto* plane) {
    result.Set(name, from_floats(info.Env(), {plane, plane + guide.cells()}));
  };
  set("alpha", matte.alpha.get());
  set("trust", matte.trust.get());
  set("unsure", matte.unsure.get());
  return result;
}

/// blurOf(p, width, height, threads), threads -1: scalar.
Napi::Value blur_of_js(const Napi::CallbackInfo& info) {
  const auto p = to_floats(info[0]);
  const int width = info[1].ToNumber().Int32Value();
  const int height = info[2].ToNumber().Int32Value();
  const int threads = info[3].ToNumber().Int32Value();
  ThreadPool pool(std::max(threads, 0));
  return Napi::Number::New(
      info.Env(), threads < 0 ? blur_of_scalar(p, width, height) : blur_of(p, width, height, pool));
}

/// estimateColours(guide, alpha, threads): six planes, F r, g, b, B r, g, b, of all cells.
Napi::Value estimate_colours_js(const Napi::CallbackInfo& info) {
  const Guide guide = to_guide(info[0]);
  const auto alpha = to_floats(info[1]);
  const int threads = info[2].ToNumber().Int32Value();
  ThreadPool pool(std::max(threads, 0));
  const std::vector<std::uint8_t> all(guide.cells(), 1);
  const CellColours colours =
      threads < 0 ? estimate_colours_scalar(guide, alpha.data())
                  : estimate_colours(guide, alpha.data(),
                                     tiles_near(all.data(), guide.width, guide.height, 0), pool);
  std::vector<float> planes;
  for (const auto& plane : colours.fore) {
    planes.insert(planes.end(), plane.get(), plane.get() + guide.cells());
  }
  for (const auto& plane : colours.back) {
    planes.insert(planes.end(), plane.get(), plane.get() + guide.cells());
  }
  return from_floats(info.Env(), planes);
}

/// localModel(guide, alpha, left, width, scalar): kModelChannels numbers a cell of the strip.
Napi::Value local_model_js(const Napi::CallbackInfo& info) {
  const Guide guide = to_guide(info[0]);
  const auto alpha = to_floats(info[1]);
  const int left = info[2].ToNumber().Int32Value();
  const int width = info[3].ToNumber().Int32Value();
  const bool scalar = info[4].ToBoolean();
  std::vector<float> out;
  LocalModel strip(guide, alpha.data(), left, width, Models::kBoth);
  std::vector<float> row(static_cast<std::size_t>(kModelChannels * width));
  for (int y = 0; y < guide.height; ++y) {
    if (scalar) {
      for (int x = 0; x < width; ++x) {
        const auto model = local_model_scalar(guide, alpha.data(), left + x, y);
        for (std::size_t k = 0; k < kModelChannels; ++k) {
          row[k * static_cast<std::size_t>(width) + static_cast<std::size_t>(x)] = model[k];
        }
      }
    } else {
      strip.row(y, row.data(), width);
    }
    out.insert(out.end(), row.begin(), row.end());
  }
  return from_floats(info.Env(), out);
}

/// resizePlane(plane, width, height, toWidth, toHeight, threads), threads -1: scalar.
Napi::Value resize_plane_js(const Napi::CallbackInfo& info) {
  const auto plane = to_floats(info[0]);
  const auto whole = [&](std::size_t i) { return info[i].ToNumber().Int32Value(); };
  ThreadPool pool(std::max(whole(5), 0));
  std::vector<float> out(static_cast<std::size_t>(whole(3)) * static_cast<std::size_t>(whole(4)));
  if (whole(5) < 0) {
    resize_plane_scalar(plane, whole(1), whole(2), whole(3), whole(4), out);
  } else {
    resize_plane(plane, whole(1), whole(2), whole(3), whole(4), out, pool);
  }
  return from_floats(info.Env(), out);
}

}  // namespace

CUTOUT_TEST_MODULE([](Napi::Env env, Napi::Object exports) {
  exports.Set("refineMatte", Napi::Function::New(env, refine_matte_js));
  exports.Set("writeEdges", Napi::Function::New(env, write_edges_js));
  exports.Set("correctAlpha", Napi::Function::New(env, correct_alpha_js));
  exports.Set("sharpenMatte", Napi::Function::New(env, sharpen_matte_js));
  exports.Set("blurOf", Napi::Function::New(env, blur_of_js));
  exports.Set("estimateColours", Napi::Function::New(env, estimate_colours_js));
  exports.Set("localModel", Napi::Function::New(env, local_model_js));
  exports.Set("resizePlane", Napi::Function::New(env, resize_plane_js));
});

}  // namespace cutout::test
