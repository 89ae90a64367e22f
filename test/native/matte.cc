#include "scalar/matte.h"

#include "image/plane.h"
#include "images.h"
#include "matte/blur_estimate.h"
#include "matte/colour_sampling.h"
#include "matte/deblur.h"
#include "matte/foreground_colours.h"
#include "matte/local_model.h"
#include "matte/refine.h"
#include "pipeline/cpu_backend.h"
#include "registry.h"
#include "scalar/image.h"

namespace cutout::test {

namespace {

/// { planes: Float32Array of 3 * width * height, width, height, scale, offset }.
Guide to_guide(const Napi::Value& value) {
  const auto object = value.As<Napi::Object>();
  const auto number = [&](const char* name) { return object.Get(name).ToNumber(); };
  Guide guide;
  guide.width = number("width").Int32Value();
  guide.height = number("height").Int32Value();
  const auto planes = to_floats(object.Get("planes"));
  if (guide.width < 1 || guide.height < 1 || planes.size() != 3 * guide.size()) {
    throw Napi::RangeError::New(value.Env(), "guide does not fit its planes");
  }
  for (std::size_t c = 0; c < 3; ++c) guide.planes[c] = planes.data() + c * guide.size();
  guide.scale.fill(number("scale").FloatValue());
  guide.offset.fill(number("offset").FloatValue());
  return guide;
}

/// The samples of p: those of the guide's { sampleConfidence, sampledAlpha }, or none.
ColourSampling to_samples(const Napi::Value& value, const Guide& guide, std::span<const float> p) {
  ThreadPool pool(0);
  ColourSampling samples = without_samples(guide, p, pool);
  const auto object = value.As<Napi::Object>();
  if (!object.Get("sampleConfidence").IsTypedArray()) return samples;
  const auto confidence = to_floats(object.Get("sampleConfidence"));
  const auto sampled = to_floats(object.Get("sampledAlpha"));
  if (confidence.size() != guide.size() || sampled.size() != guide.size()) {
    throw Napi::RangeError::New(value.Env(), "guide does not fit its samples");
  }
  samples.none = false;
  for (std::size_t i = 0; i < guide.size(); ++i) {
    samples.sample_confidence[i] = confidence[i];
    samples.sampled_alpha[i] = sampled[i];
    samples.alpha[i] = samples.alpha[i] + confidence[i] * (sampled[i] - samples.alpha[i]);
  }
  return samples;
}

Napi::Object from_summary(Napi::Env env, const MatteSummary& summary) {
  auto result = Napi::Object::New(env);
  result.Set("box", from_box(env, summary.box));
  result.Set("foregroundPixels", static_cast<double>(summary.foreground_pixels));
  result.Set("opaque", summary.opaque);
  return result;
}

/// refine(image, guide, p, roi, 'clear' | 'keep', threads), threads -1: scalar.
Napi::Value refine_js(const Napi::CallbackInfo& info) {
  const ImageView image = to_image(info[0]);
  const Guide guide = to_guide(info[1]);
  const auto p = to_floats(info[2]);
  const Box roi = to_box(info[3]);
  const HiddenColour hidden =
      info[4].ToString().Utf8Value() == "keep" ? HiddenColour::kKeep : HiddenColour::kClear;
  const int threads = info[5].ToNumber().Int32Value();
  const ColourSampling samples = to_samples(info[1], guide, p);
  if (threads < 0) {
    return from_summary(info.Env(), refine_scalar(image, guide, p, samples, roi, hidden));
  }
  ThreadPool pool(threads);
  return from_summary(info.Env(),
                      write_edges(image, solve_edges(guide, p, samples, pool), roi, hidden, pool));
}

/// refineMatte(image, guide, p, threads): as the pipeline does it.
Napi::Value refine_matte_js(const Napi::CallbackInfo& info) {
  const ImageView image = to_image(info[0]);
  const Guide guide = to_guide(info[1]);
  const auto p = to_floats(info[2]);
  NetworkInput spec{guide.width, guide.height, {}, {}};
  for (std::size_t c = 0; c < 3; ++c) {
    spec.mean[c] = guide.offset[c] * 255;
    spec.std[c] = guide.scale[c] * 255;
  }
  ThreadPool pool(info[3].ToNumber().Int32Value());
  // Tensors are written by no stage from here on.
  const auto tensor = [&guide](const float* values, int planes) -> TensorView {
    return {const_cast<float*>(values), planes, guide.height, guide.width};
  };
  const Prediction prediction{tensor(p.data(), 1), tensor(guide.planes[0], 3), spec};
  MatteSummary summary;
  const Box whole{0, 0, image.width, image.height};
  const Status status =
      solve_matte(image, whole, prediction, pool)->write(whole, HiddenColour::kClear, summary);
  if (!status.ok()) throw Napi::Error::New(info.Env(), status.message());
  return from_summary(info.Env(), summary);
}

/// sampleColours(guide, p, threads): { alpha, sampleConfidence, sampledAlpha }.
Napi::Value sample_colours_js(const Napi::CallbackInfo& info) {
  const Guide guide = to_guide(info[0]);
  const auto p = to_floats(info[1]);
  const int threads = info[2].ToNumber().Int32Value();
  ThreadPool pool(std::max(threads, 0));
  const ColourSampling sampling =
      threads < 0 ? sample_colours_scalar(guide, p) : sample_colours(guide, p, pool);
  auto result = Napi::Object::New(info.Env());
  const auto set = [&](const char* name, const float* plane) {
    result.Set(name, from_floats(info.Env(), {plane, plane + guide.size()}));
  };
  set("alpha", sampling.alpha.get());
  set("sampleConfidence", sampling.sample_confidence.get());
  set("sampledAlpha", sampling.sampled_alpha.get());
  return result;
}

/// deblurMatte(guide, p, threads): { alpha, confidence, uncertain }.
Napi::Value deblur_matte_js(const Napi::CallbackInfo& info) {
  const Guide guide = to_guide(info[0]);
  const auto p = to_floats(info[1]);
  ThreadPool pool(info[2].ToNumber().Int32Value());
  const DeblurredMatte matte = deblur_matte(guide, p, to_samples(info[0], guide, p), pool);
  auto result = Napi::Object::New(info.Env());
  const auto set = [&](const char* name, const auto* plane) {
    result.Set(name, from_floats(info.Env(), {plane, plane + guide.size()}));
  };
  set("alpha", matte.alpha.get());
  set("confidence", matte.confidence.get());
  set("uncertain", matte.uncertain.get());
  return result;
}

/// blurOf(p, width, height, threads), threads -1: scalar.
Napi::Value blur_of_js(const Napi::CallbackInfo& info) {
  const auto p = to_floats(info[0]);
  const int width = info[1].ToNumber().Int32Value();
  const int height = info[2].ToNumber().Int32Value();
  const int threads = info[3].ToNumber().Int32Value();
  ThreadPool pool(std::max(threads, 0));
  return Napi::Number::New(info.Env(), threads < 0 ? estimate_blur_scalar(p, width, height)
                                                   : estimate_blur(p, width, height, pool));
}

/// estimateColours(guide, alpha, threads): six planes, F r, g, b, B r, g, b, of all network pixels.
Napi::Value estimate_colours_js(const Napi::CallbackInfo& info) {
  const Guide guide = to_guide(info[0]);
  const auto alpha = to_floats(info[1]);
  const int threads = info[2].ToNumber().Int32Value();
  ThreadPool pool(std::max(threads, 0));
  const std::vector<std::uint8_t> all(guide.size(), 1);
  const LayerColours colours =
      threads < 0 ? estimate_colours_scalar(guide, alpha.data())
                  : estimate_colours(guide, alpha.data(),
                                     tiles_near(all.data(), guide.width, guide.height, 0), pool);
  std::vector<float> planes;
  for (const auto& plane : colours.fore) {
    planes.insert(planes.end(), plane.get(), plane.get() + guide.size());
  }
  for (const auto& plane : colours.back) {
    planes.insert(planes.end(), plane.get(), plane.get() + guide.size());
  }
  return from_floats(info.Env(), planes);
}

/// localModel(guide, alpha, left, width, scalar): kPlaneChannels numbers for each network pixel of
/// the strip.
Napi::Value local_model_js(const Napi::CallbackInfo& info) {
  const Guide guide = to_guide(info[0]);
  const auto alpha = to_floats(info[1]);
  const int left = info[2].ToNumber().Int32Value();
  const int width = info[3].ToNumber().Int32Value();
  const bool scalar = info[4].ToBoolean();
  std::vector<float> out;
  LocalModel strip(guide, alpha.data(), left, width);
  std::vector<float> row(static_cast<std::size_t>(kPlaneChannels * width));
  for (int y = 0; y < guide.height; ++y) {
    if (scalar) {
      for (int x = 0; x < width; ++x) {
        const auto model = local_model_scalar(guide, alpha.data(), left + x, y);
        for (std::size_t k = 0; k < kPlaneChannels; ++k) {
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
  exports.Set("refine", Napi::Function::New(env, refine_js));
  exports.Set("refineMatte", Napi::Function::New(env, refine_matte_js));
  exports.Set("sampleColours", Napi::Function::New(env, sample_colours_js));
  exports.Set("deblurMatte", Napi::Function::New(env, deblur_matte_js));
  exports.Set("blurOf", Napi::Function::New(env, blur_of_js));
  exports.Set("estimateColours", Napi::Function::New(env, estimate_colours_js));
  exports.Set("localModel", Napi::Function::New(env, local_model_js));
  exports.Set("resizePlane", Napi::Function::New(env, resize_plane_js));
});

}  // namespace cutout::test
