#include "error.h"

namespace cutout::binding {

namespace {

const char* name_of(Code code) {
  switch (code) {
    case Code::kBadInput:
      return "ENGINE_BAD_INPUT";
    case Code::kQueueFull:
      return "ENGINE_QUEUE_FULL";
    case Code::kCancelled:
      return "ENGINE_CANCELLED";
    case Code::kDeadline:
      return "ENGINE_DEADLINE";
    case Code::kClosed:
      return "ENGINE_CLOSED";
    case Code::kModel:
      return "ENGINE_MODEL";
    case Code::kRuntime:
      return "ENGINE_RUNTIME";
    case Code::kProvider:
      return "ENGINE_PROVIDER";
    case Code::kDriver:
      return "ENGINE_DRIVER";
    case Code::kDevice:
      return "ENGINE_DEVICE";
    case Code::kDeviceMemory:
      return "ENGINE_DEVICE_MEMORY";
    case Code::kOutOfMemory:
      return "ENGINE_OUT_OF_MEMORY";
    case Code::kOk:
    case Code::kInternal:
      break;
  }
  return "ENGINE_INTERNAL";
}

}  // namespace

Napi::Error make_error(Napi::Env env, const Status& status) {
  Napi::Error error = Napi::Error::New(env, status.message());
  error.Set("code", Napi::String::New(env, name_of(status.code())));
  return error;
}

void throw_if_error(Napi::Env env, const Status& status) {
  if (!status.ok()) throw make_error(env, status);
}

}  // namespace cutout::binding
