// The addon as it ships, with two more functions: test/engine/faults.test.ts.
#include "binding/module.h"
#include "faults/faults.h"

namespace {

using cutout::test::Failing;

/// fault('allocation' | 'thread', which, 'one' | 'rest')
void fault(const Napi::CallbackInfo& info) {
  const std::int64_t which = info[1].As<Napi::Number>().Int64Value();
  const bool one = info[2].As<Napi::String>().Utf8Value() == "one";
  const Failing failing = one ? Failing::kOne : Failing::kRest;
  if (info[0].As<Napi::String>().Utf8Value() == "thread") {
    cutout::test::fail_thread(which, failing);
  } else {
    cutout::test::fail_allocation(which, failing);
  }
}

/// Allocations since the last fault().
Napi::Value no_fault(const Napi::CallbackInfo& info) {
  const auto seen = static_cast<double>(cutout::test::fail_nothing());
  return Napi::Number::New(info.Env(), seen);
}

Napi::Object init(Napi::Env env, Napi::Object exports) {
  cutout::binding::init(env, exports);
  exports.Set("fault", Napi::Function::New(env, fault, "fault"));
  exports.Set("noFault", Napi::Function::New(env, no_fault, "noFault"));
  return exports;
}

}  // namespace

NODE_API_MODULE(cutout_faults, init)
