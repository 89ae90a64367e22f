#include "results.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <utility>

namespace cutout::binding {

namespace {

Napi::Object from_subject(Napi::Env env, const Subject& subject) {
  Napi::Object result = Napi::Object::New(env);
  result.Set("type", std::string(kSubjectTypes[subject.type]));
  Napi::Array probabilities = Napi::Array::New(env, kSubjectCount);
  for (std::uint32_t i = 0; i < kSubjectCount; ++i) {
    probabilities.Set(i, static_cast<double>(subject.probabilities[i]));
  }
  result.Set("probabilities", probabilities);
  return result;
}

Napi::Object from_box(Napi::Env env, const Box& box) {
  Napi::Object result = Napi::Object::New(env);
  result.Set("left", box.left);
  result.Set("top", box.top);
  result.Set("width", box.width);
  result.Set("height", box.height);
  return result;
}

template <typename T>
Napi::Value from_vector(Napi::Env env, std::vector<T> values) {
  auto owned = std::make_unique<std::vector<T>>(std::move(values));
  T* const data = owned->data();
  const std::size_t size = owned->size();
  const Napi::Value buffer = Napi::Buffer<T>::NewOrCopy(
      env, data, size,
      [](Napi::BasicEnv, T*, std::vector<T>* hint) {
        const std::unique_ptr<std::vector<T>> freed(hint);
      },
      owned.get());
  static_cast<void>(owned.release());
  return buffer;
}

Napi::Value from_gpu(Napi::Env env, const ort::GpuRuntime& gpu) {
  const ort::DeviceProperties& device = gpu.device;
  const auto version = [](int cuda) {
    return std::to_string(cuda / 1000) + "." + std::to_string(cuda % 1000 / 10);
  };
  Napi::Object result = Napi::Object::New(env);
  result.Set("id", device.number);
  result.Set("name", device.name);
  result.Set("computeCapability",
             std::to_string(device.compute_major) + "." + std::to_string(device.compute_minor));
  result.Set("memoryBytes", static_cast<double>(device.memory_bytes));
  result.Set("driver", gpu.driver);
  result.Set("driverCuda", version(device.driver_cuda));
  result.Set("cuda", version(gpu.cuda_runtime));
  result.Set("tensorrt", gpu.tensorrt);
  return result;
}

Napi::Value from_counts(Napi::Env env, std::span<const std::uint64_t> counts) {
  Napi::Array result = Napi::Array::New(env, counts.size());
  for (std::uint32_t i = 0; i < counts.size(); ++i) result.Set(i, static_cast<double>(counts[i]));
  return result;
}

Napi::Object from_device_stats(Napi::Env env, int id, const DeviceWork& stats) {
  Napi::Object result = Napi::Object::New(env);
  result.Set("id", id);
  if (!stats.lost.ok()) result.Set("lost", stats.lost.message());
  result.Set("losses", static_cast<double>(stats.losses));
  result.Set("batches", from_counts(env, stats.batches));
  Napi::Array waits = Napi::Array::New(env, stats.waits.size());
  for (std::uint32_t i = 0; i < stats.waits.size(); ++i) {
    Napi::Array wait = Napi::Array::New(env, 2);
    wait.Set(0U,
             i < kWaitBoundsMs.size() ? kWaitBoundsMs[i] : std::numeric_limits<double>::infinity());
    wait.Set(1U, static_cast<double>(stats.waits[i]));
    waits.Set(i, wait);
  }
  result.Set("waits", waits);
  result.Set("waitedMs", stats.waited_ms);
  return result;
}

Napi::Array from_opening(Napi::Env env, const std::map<std::string, LoadStep>& opening) {
  Napi::Array all = Napi::Array::New(env, opening.size());
  std::uint32_t next = 0;
  for (const auto& [network, step] : opening) {
    Napi::Object of_network = Napi::Object::New(env);
    of_network.Set("network", network);
    if (step.device_id) of_network.Set("device", *step.device_id);
    of_network.Set("batch", step.batch);
    of_network.Set("step", step.step);
    of_network.Set("steps", step.steps);
    of_network.Set("seconds", milliseconds(step.since, Clock::now()) / 1000);
    all.Set(next++, of_network);
  }
  return all;
}

}  // namespace

Napi::Value from_network_info(Napi::Env env, const std::string& name, const NetworkInfo& info) {
  Napi::Object result = Napi::Object::New(env);
  result.Set("name", name);
  result.Set("loadMs", info.load_ms);
  result.Set("warmUpMs", info.warm_up_ms);
  return result;
}

Napi::Value from_gpus(Napi::Env env, const std::vector<ort::GpuRuntime>& gpus) {
  Napi::Array result = Napi::Array::New(env, gpus.size());
  for (std::uint32_t i = 0; i < gpus.size(); ++i) result.Set(i, from_gpu(env, gpus[i]));
  return result;
}

Napi::Value from_log(Napi::Env env, const std::vector<ort::LogLine>& lines) {
  Napi::Array result = Napi::Array::New(env, lines.size());
  for (std::uint32_t i = 0; i < lines.size(); ++i) {
    Napi::Object line = Napi::Object::New(env);
    line.Set("level", lines[i].level);
    line.Set("text", lines[i].text);
    result.Set(i, line);
  }
  return result;
}

Napi::Value from_subject_types_info(Napi::Env env, const SubjectTypesInfo& info) {
  Napi::Object result = Napi::Object::New(env);
  result.Set("features", static_cast<double>(info.features));
  result.Set("loadMs", info.load_ms);
  result.Set("warmUpMs", info.warm_up_ms);
  return result;
}

Napi::Value from_selector_info(Napi::Env env, const SelectorInfo& info) {
  Napi::Object result = Napi::Object::New(env);
  result.Set("embeddingBytes", static_cast<double>(info.embedding_bytes));
  result.Set("loadMs", info.load_ms);
  return result;
}

Napi::Value from_embedding(Napi::Env env, Embedding& embedding) {
  Napi::Object result = Napi::Object::New(env);
  result.Set("data", from_vector(env, std::move(embedding.values)));
  result.Set("queueMs", embedding.queue_ms);
  result.Set("embedMs", embedding.embed_ms);
  return result;
}

Napi::Value from_select_result(Napi::Env env, SelectResult& result) {
  Napi::Object to = Napi::Object::New(env);
  Napi::Object mask = Napi::Object::New(env);
  mask.Set("data", from_vector(env, std::move(result.selection.mask)));
  mask.Set("width", result.selection.side);
  mask.Set("height", result.selection.side);
  to.Set("mask", mask);
  to.Set("score", static_cast<double>(result.selection.score));
  to.Set("queueMs", result.queue_ms);
  to.Set("selectMs", result.select_ms);
  return to;
}

namespace {

const char* second_look(SecondLook look) {
  switch (look) {
    case SecondLook::kNone:
      return "none";
    case SecondLook::kDeclined:
      return "declined";
    case SecondLook::kTaken:
      return "taken";
  }
  return "none";
}

}  // namespace

Napi::Value from_matte_result(Napi::Env env, MatteResult& result) {
  Napi::Object to = Napi::Object::New(env);
  to.Set("width", result.width);
  to.Set("height", result.height);
  to.Set("box", from_box(env, result.summary.box));
  to.Set("foregroundPixels", static_cast<double>(result.summary.foreground_pixels));
  to.Set("opaque", result.summary.opaque);
  to.Set("runs", result.runs);
  to.Set("uncertainty", result.uncertainty);
  to.Set("secondLook", second_look(result.second_look));
  to.Set("queueMs", result.queue_ms);
  to.Set("prepareMs", result.prepare_ms);
  to.Set("inferMs", result.infer_ms);
  to.Set("subjectMs", result.subject_ms);
  if (result.subject) to.Set("subject", from_subject(env, *result.subject));
  to.Set("matteMs", result.matte_ms);
  if (!result.output.empty()) {
    Napi::Object output = Napi::Object::New(env);
    output.Set("data", from_vector(env, std::move(result.output)));
    output.Set("width", result.output_width);
    output.Set("height", result.output_height);
    output.Set("view", from_box(env, result.output_view));
    to.Set("output", output);
  }
  return to;
}

Napi::Value from_compose_result(Napi::Env env, const ComposeResult& result) {
  Napi::Object to = Napi::Object::New(env);
  to.Set("box", from_box(env, result.summary.box));
  to.Set("opaque", result.summary.opaque);
  to.Set("queueMs", result.queue_ms);
  to.Set("composeMs", result.compose_ms);
  return to;
}

Napi::Value from_stats(Napi::Env env, Engine& engine) {
  const SchedulerStats stats = engine.stats();
  Napi::Object result = Napi::Object::New(env);
  result.Set("queued", static_cast<double>(stats.queued));
  result.Set("running", static_cast<double>(stats.running));
  result.Set("done", static_cast<double>(stats.done));
  result.Set("failed", static_cast<double>(stats.failed));
  result.Set("cancelled", static_cast<double>(stats.cancelled));
  result.Set("keptBytes", static_cast<double>(Engine::kept_bytes()));
  result.Set("opening", from_opening(env, engine.loading()));
  const std::vector<DeviceWork> devices = engine.device_work();
  Napi::Array all = Napi::Array::New(env, devices.size());
  for (std::uint32_t i = 0; i < devices.size(); ++i) {
    Napi::Object device = from_device_stats(env, engine.device_ids()[i], devices[i]);
    if (!engine.budgets().empty()) {
      const ort::DeviceMemoryBudget& memory = *engine.budgets()[i];
      device.Set("memoryBytes", static_cast<double>(memory.reserved()));
      device.Set("memoryLimitBytes", static_cast<double>(memory.limit()));
    }
    all.Set(i, device);
  }
  result.Set("devices", all);
  return result;
}

Napi::Value from_bytes(Napi::Env env, std::vector<std::uint8_t> bytes) {
  return from_vector(env, std::move(bytes));
}

}  // namespace cutout::binding
