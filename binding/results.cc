#include "results.h"

#include <array>
#include <iterator>
#include <limits>
#include <memory>

#include "ort/runtime.h"

namespace cutout::binding {

namespace {

template <typename T>
Napi::Value buffer(Napi::Env env, std::vector<T>& values) {
  auto owned = std::make_unique<std::vector<T>>(std::move(values));
  T* const data = owned->data();
  const std::size_t size = owned->size();
  const Napi::Value result = Napi::Buffer<T>::NewOrCopy(
      env, data, size,
      [](Napi::BasicEnv, T*, std::vector<T>* hint) {
        const std::unique_ptr<std::vector<T>> freed(hint);
      },
      owned.get());
  static_cast<void>(owned.release());
  return result;
}

Napi::Value device_stats(Napi::Env env, const Engine& engine, std::size_t device,
                         const DeviceWork& work) {
  Napi::Array waits = Napi::Array::New(env);
  for (std::size_t i = 0; i < work.waits.size(); ++i) {
    const double bound =
        i < kWaitBoundsMs.size() ? kWaitBoundsMs[i] : std::numeric_limits<double>::infinity();
    waits.Set(waits.Length(), array_of(env, std::array{bound, static_cast<double>(work.waits[i])}));
  }
  std::optional<std::uint64_t> reserved;
  std::optional<std::uint64_t> limit;
  if (!engine.budgets().empty()) {
    reserved = engine.budgets()[device]->reserved();
    limit = engine.budgets()[device]->limit();
  }
  const Napi::Value lost = work.lost.ok() ? env.Undefined() : to_js(env, work.lost.message());
  return object_of(env, "id", engine.device_ids()[device], "lost", lost, "losses", work.losses,
                   "batches", array_of(env, work.batches), "waits", waits, "waitedMs",
                   work.waited_ms, "memoryBytes", reserved, "memoryLimitBytes", limit);
}

/// The names of the codes of core/status.h, in their order; making an error does not allocate.
constexpr const char* kNames[] = {
    "ENGINE_INTERNAL", "ENGINE_BAD_INPUT", "ENGINE_QUEUE_FULL",    "ENGINE_CANCELLED",
    "ENGINE_CLOSED",   "ENGINE_MODEL",     "ENGINE_RUNTIME",       "ENGINE_PROVIDER",
    "ENGINE_DRIVER",   "ENGINE_DEVICE",    "ENGINE_DEVICE_MEMORY", "ENGINE_OUT_OF_MEMORY",
    "ENGINE_INTERNAL"};
static_assert(std::size(kNames) == static_cast<std::size_t>(Code::kInternal) + 1);

}  // namespace

Napi::Value to_js(Napi::Env env, const Box& box) {
  return object_of(env, "left", box.left, "top", box.top, "width", box.width, "height", box.height);
}

Napi::Value to_js(Napi::Env env, const Subject& subject) {
  return object_of(env, "type", std::string(kSubjectTypes[subject.type]), "probabilities",
                   array_of(env, subject.probabilities));
}

Napi::Value to_js(Napi::Env env, const NetworkInfo& info) {
  return object_of(env, "name", info.name, "loadMs", info.load_ms, "warmUpMs", info.warm_up_ms);
}

Napi::Value to_js(Napi::Env env, const SubjectTypesInfo& info) {
  return object_of(env, "features", info.features, "loadMs", info.load_ms, "warmUpMs",
                   info.warm_up_ms);
}

Napi::Value to_js(Napi::Env env, const SelectorInfo& info) {
  return object_of(env, "embeddingBytes", info.embedding_bytes, "loadMs", info.load_ms);
}

Napi::Value to_js(Napi::Env env, Embedding& embedding) {
  return object_of(env, "data", buffer(env, embedding.values));
}

Napi::Value to_js(Napi::Env env, Selection& selection) {
  const Napi::Object mask = object_of(env, "data", buffer(env, selection.mask), "width",
                                      selection.side, "height", selection.side);
  return object_of(env, "mask", mask, "score", selection.score);
}

Napi::Value to_js(Napi::Env env, MatteResult& result) {
  static constexpr std::array kLooks{"none", "declined", "taken"};
  Napi::Value output = env.Undefined();
  if (!result.output.empty()) {
    output = object_of(env, "data", buffer(env, result.output), "width", result.output_width,
                       "height", result.output_height, "view", result.output_view);
  }
  const MatteSummary& summary = result.summary;
  return object_of(env, "width", result.width, "height", result.height, "box", summary.box,
                   "foregroundPixels", summary.foreground_pixels, "opaque", summary.opaque, "runs",
                   result.runs, "uncertainty", result.uncertainty, "secondLook",
                   kLooks[static_cast<std::size_t>(result.second_look)], "queueMs", result.queue_ms,
                   "prepareMs", result.prepare_ms, "inferMs", result.infer_ms, "subjectMs",
                   result.subject_ms, "subject", result.subject, "matteMs", result.matte_ms,
                   "output", output);
}

Napi::Value to_js(Napi::Env env, const ComposeSummary& summary) {
  return object_of(env, "box", summary.box, "opaque", summary.opaque);
}

Napi::Value to_js(Napi::Env env, std::vector<std::uint8_t>& bytes) { return buffer(env, bytes); }

Napi::Value to_js(Napi::Env env, const ort::GpuRuntime& gpu) {
  const ort::DeviceProperties& device = gpu.device;
  return object_of(env, "id", device.number, "name", device.name, "computeCapability",
                   device.compute_capability(), "memoryBytes", device.memory_bytes, "driver",
                   gpu.driver, "driverCuda", ort::cuda_version(device.driver_cuda), "cuda",
                   ort::cuda_version(gpu.cuda_runtime), "tensorrt", gpu.tensorrt);
}

Napi::Value to_js(Napi::Env env, const ort::LogLine& line) {
  return object_of(env, "level", line.level, "text", line.text);
}

Napi::Value to_js(Napi::Env env, Engine& engine) {
  Napi::Array opening = Napi::Array::New(env);
  for (const auto& [network, step] : engine.loading()) {
    opening.Set(opening.Length(),
                object_of(env, "network", network, "device", step.device_id, "batch", step.batch,
                          "step", step.step, "steps", step.steps, "seconds",
                          milliseconds(step.since, Clock::now()) / 1000));
  }
  Napi::Array devices = Napi::Array::New(env);
  for (const DeviceWork& work : engine.device_work()) {
    devices.Set(devices.Length(), device_stats(env, engine, devices.Length(), work));
  }
  const SchedulerStats stats = engine.stats();
  return object_of(env, "queued", stats.queued, "running", stats.running, "done", stats.done,
                   "failed", stats.failed, "cancelled", stats.cancelled, "keptBytes",
                   ort::kept_bytes(), "opening", opening, "devices", devices);
}

Napi::Error make_error(Napi::Env env, const Status& status) {
  Napi::Error error = Napi::Error::New(env, status.message());
  error.Set("code", Napi::String::New(env, kNames[static_cast<std::size_t>(status.code())]));
  return error;
}

}  // namespace cutout::binding
