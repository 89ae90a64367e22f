#pragma once

#include <napi.h>

#include <string>

#include "pipeline/plan.h"

namespace cutout::test {

/// Networks and plans of the tests of stages, from JavaScript.

inline NetworkSpec to_spec(const Napi::Object& from) {
  const auto side = [&](const char* name) { return from.Get(name).ToNumber().Int32Value(); };
  NetworkSpec spec;
  spec.name = from.Get("name").ToString().Utf8Value();
  spec.path = from.Get("path").ToString().Utf8Value();
  spec.input = {side("width"), side("height"), {127.5F, 127.5F, 127.5F}, {127.5F, 127.5F, 127.5F}};
  spec.output = NetworkOutput::kLogit;
  spec.gpu_program = from.Get("gpuProgram").ToBoolean();
  return spec;
}

inline MattePlan to_plan(const Napi::Object& from) {
  const auto side = [](const Napi::Object& object, const char* name) {
    return object.Get(name).ToNumber().Int32Value();
  };
  MattePlan plan;
  plan.width = side(from, "width");
  plan.height = side(from, "height");
  plan.roi = {0, 0, plan.width, plan.height};
  if (from.Has("input")) {
    const auto input = from.Get("input").As<Napi::Object>();
    plan.input = {side(input, "width"), side(input, "height")};
  }
  if (from.Has("mask")) {
    const auto mask = from.Get("mask").As<Napi::Object>();
    const auto data = mask.Get("data").As<Napi::Uint8Array>();
    plan.mask = {{data.Data(), data.ElementLength()}, side(mask, "width"), side(mask, "height")};
    plan.return_output = true;
  }
  return plan;
}

}  // namespace cutout::test
