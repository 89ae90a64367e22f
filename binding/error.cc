#include "error.h"

#include <iterator>

namespace cutout::binding {

namespace {

/// The names of the codes of core/status.h, in their order; making an error does not allocate.
constexpr const char* kNames[] = {
    "ENGINE_INTERNAL",      "ENGINE_BAD_INPUT", "ENGINE_QUEUE_FULL", "ENGINE_CANCELLED",
    "ENGINE_DEADLINE",      "ENGINE_CLOSED",    "ENGINE_MODEL",      "ENGINE_RUNTIME",
    "ENGINE_PROVIDER",      "ENGINE_DRIVER",    "ENGINE_DEVICE",     "ENGINE_DEVICE_MEMORY",
    "ENGINE_OUT_OF_MEMORY", "ENGINE_INTERNAL"};
static_assert(std::size(kNames) == static_cast<std::size_t>(Code::kInternal) + 1);

}  // namespace

Napi::Error make_error(Napi::Env env, const Status& status) {
  Napi::Error error = Napi::Error::New(env, status.message());
  error.Set("code", Napi::String::New(env, kNames[static_cast<std::size_t>(status.code())]));
  return error;
}

}  // namespace cutout::binding
