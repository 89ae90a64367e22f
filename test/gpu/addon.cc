#include <napi.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "core/cancel.h"
#include "core/thread_pool.h"
#include "cuda/library.h"
#include "ort/device_memory_budget.h"
#include "ort/driver.h"
#include "ort/failure.h"
#include "ort/network.h"
#include "ort/options.h"
#include "ort/rtx.h"
#include "ort/runtime.h"
#include "ort/runtime_log.h"
#include "ort/session.h"
#include "pipeline/cpu_backend.h"
#include "pipeline/device_backend.h"
#include "pipeline/device_pool.h"
#include "pipeline/gpu_network.h"
#include "stress/device/host_device.h"

/// What test/gpu/*.test.ts need of native/ort: the parts of the GPU path that run without a GPU.
namespace cutout::test {

namespace {

Napi::Value from_status(Napi::Env env, const Status& status) {
  Napi::Object result = Napi::Object::New(env);
  result.Set("code", static_cast<int>(status.code()));
  result.Set("message", status.message());
  return result;
}

std::string text(const Napi::Value& value) { return value.As<Napi::String>().Utf8Value(); }
int number(const Napi::Value& value) { return value.As<Napi::Number>().Int32Value(); }
std::vector<int> numbers(const Napi::Value& value) {
  const Napi::Array from = value.As<Napi::Array>();
  std::vector<int> all;
  for (std::uint32_t i = 0; i < from.Length(); ++i) all.push_back(number(from.Get(i)));
  return all;
}

/// (library, number) → status with the device
Napi::Value find(const Napi::CallbackInfo& info) {
  ort::DeviceProperties device;
  const Status status =
      ort::find_device("It fails", number(info[1]), device, text(info[0]).c_str());
  const Napi::Object result = from_status(info.Env(), status).As<Napi::Object>();
  result.Set("name", device.name);
  result.Set("memoryBytes", static_cast<double>(device.memory_bytes));
  result.Set("driverCuda", device.driver_cuda);
  result.Set("compute", device.compute_major * 10 + device.compute_minor);
  return result;
}

/// (library) → compute capabilities of the GPUs, separated by spaces
Napi::Value capabilities(const Napi::CallbackInfo& info) {
  std::string all;
  for (const std::string& each : ort::compute_capabilities(text(info[0]).c_str()))
    all += each + " ";
  return Napi::String::New(info.Env(), all);
}

/// (driverCuda, computeMajor, computeMinor, cudaRuntime, tensorrt) → status
Napi::Value check(const Napi::CallbackInfo& info) {
  ort::DeviceProperties device;
  device.name = "Stand-in";
  device.driver_cuda = number(info[0]);
  device.compute_major = number(info[1]);
  device.compute_minor = number(info[2]);
  return from_status(info.Env(), ort::check_device("It fails", device, number(info[3]),
                                                   info[4].As<Napi::Boolean>().Value()));
}

/// (message) → status
Napi::Value failure(const Napi::CallbackInfo& info) {
  return from_status(info.Env(), ort::gpu_failure("It fails", text(info[0]), Code::kInternal));
}

/// (message) → status
Napi::Value failure_on_cpu(const Napi::CallbackInfo& info) {
  return from_status(info.Env(), ort::cpu_failure("It fails", text(info[0]), Code::kInternal));
}

Napi::Value nodes(const Napi::CallbackInfo& info) {
  return Napi::String::New(info.Env(), ort::nodes_on_cpu(text(info[0]), number(info[1])));
}

Napi::Value from_options(Napi::Env env, const ort::ProviderOptions& options) {
  Napi::Object result = Napi::Object::New(env);
  for (const auto& [name, value] : options) result.Set(name, value);
  return result;
}

/// (tensorrt, deviceId, fp16, engineCache, memoryLimit) → names and values
Napi::Value options(const Napi::CallbackInfo& info) {
  const auto limit = static_cast<std::uint64_t>(info[4].As<Napi::Number>().Int64Value());
  const ort::GpuOptions gpu{number(info[1]), limit, info[2].As<Napi::Boolean>().Value(),
                            text(info[3])};
  return from_options(info.Env(), info[0].As<Napi::Boolean>().Value() ? ort::tensorrt_options(gpu)
                                                                      : ort::cuda_options(gpu));
}

/// Of a network on the CPU, from the arguments (runtimePath, file, width, height); opens the
/// library first.
Status network_options(const Napi::CallbackInfo& info, ort::NetworkOptions& options) {
  CUTOUT_RETURN_IF_ERROR(ort::open_runtime(text(info[0])));
  options.path = text(info[1]);
  options.width = number(info[2]);
  options.height = number(info[3]);
  return {};
}

/// The same with a fifth argument, batches: number[].
Status batch_options(const Napi::CallbackInfo& info, ort::NetworkOptions& options) {
  CUTOUT_RETURN_IF_ERROR(network_options(info, options));
  options.batches = numbers(info[4]);
  return {};
}

/// (runtimePath, plugin, libraries: string[], file, width, height, batches: number[], target,
/// folder) → status. Builds the engine of TensorRT for RTX as a session does, for the target, for
/// example "sm89", without running it: so much works without a GPU.
Napi::Value build_engine(const Napi::CallbackInfo& info) {
  const auto build = [&]() -> Status {
    CUTOUT_RETURN_IF_ERROR(ort::open_runtime(text(info[0])));
    ort::NetworkOptions options;
    options.provider = ort::Provider::kTensorRtRtx;
    options.path = text(info[3]);
    options.width = number(info[4]);
    options.height = number(info[5]);
    options.batches = numbers(info[6]);
    options.gpu.engine_cache = text(info[8]);
    options.gpu.kernel_cache = options.gpu.engine_cache + ".kernels";
    std::vector<std::string> libraries;
    const Napi::Array given = info[2].As<Napi::Array>();
    for (std::uint32_t i = 0; i < given.Length(); ++i) libraries.push_back(text(given.Get(i)));
    ort::GpuRuntime runtime;
    CUTOUT_RETURN_IF_ERROR(ort::open_device(options.provider, 0, libraries, text(info[1]),
                                            ort::OwnKernels::kNone, runtime));
    return ort::guarded(true, Code::kInternal, "The engine was not built", [&]() -> Status {
      Ort::SessionOptions settings = ort::session_options(1);
      std::string path = options.path;
      ort::append_engine(options, settings, path);
      settings.AddConfigEntry("session.compile_only", "1");
      settings.AddConfigEntry("ep.nvtensorrtrtxexecutionprovider.nv_target_sm",
                              text(info[7]).c_str());
      const Ort::Session session(ort::environment(), path.c_str(), settings);
      return {};
    });
  };
  return from_status(info.Env(), build());
}

/// Throws an error as JavaScript's.
void check_status(const Napi::CallbackInfo& info, const Status& status) {
  if (!status.ok()) throw Napi::Error::New(info.Env(), status.message());
}

/// (runtimePath, file, width, height, bind, inputs: Float32Array[]) → Float32Array[] of output 0,
/// each input on the next of two slots.
Napi::Value run(const Napi::CallbackInfo& info) {
  ort::NetworkOptions options;
  check_status(info, network_options(info, options));
  options.bind = info[4].As<Napi::Boolean>().Value();
  options.slots = 2;
  std::unique_ptr<ort::Network> network;
  const CancelToken token;
  check_status(info, ort::Network::open(options, token, network));
  const Napi::Array inputs = info[5].As<Napi::Array>();
  Napi::Array results = Napi::Array::New(info.Env(), inputs.Length());
  for (std::uint32_t i = 0; i < inputs.Length(); ++i) {
    const int slot = static_cast<int>(i % 2);
    const Napi::Float32Array values = inputs.Get(i).As<Napi::Float32Array>();
    std::copy_n(values.Data(), values.ElementLength(), network->input(slot).begin());
    check_status(info, network->run(slot, token));
    const std::span<float> output = network->output(slot);
    Napi::Float32Array copy = Napi::Float32Array::New(info.Env(), output.size());
    std::copy(output.begin(), output.end(), copy.Data());
    results.Set(i, copy);
  }
  return results;
}

/// (runtimePath, file, width, height, batches: number[], members, inputs: Float32Array[], device) →
/// Float32Array[] of output 0; so many inputs at a time as members, in the smallest batch for them.
/// `device`: inputs and outputs lie on the host as a device.
Napi::Value run_batches(const Napi::CallbackInfo& info) {
  const auto check = [&info](const Status& status) { check_status(info, status); };
  ort::NetworkOptions options;
  check(batch_options(info, options));
  const auto members = static_cast<std::uint32_t>(number(info[5]));
  options.slots = static_cast<int>(members);
  ThreadPool pool(1);
  Device device(host_device(), 0);
  const bool use_device = info[7].As<Napi::Boolean>().Value();
  const std::unique_ptr<Backend> backend =
      use_device ? make_device_backend(device, pool) : make_cpu_backend(pool);
  if (use_device) options.memory = &device;
  std::unique_ptr<ort::Network> network;
  const CancelToken token;
  check(ort::Network::open(options, token, network));
  const Napi::Array inputs = info[6].As<Napi::Array>();
  Napi::Array results = Napi::Array::New(info.Env(), inputs.Length());
  for (std::uint32_t from = 0; from < inputs.Length(); from += members) {
    const std::uint32_t count = std::min(members, inputs.Length() - from);
    std::vector<int> slots;
    for (std::uint32_t i = 0; i < count; ++i) {
      // Not in the order of their numbers.
      const int slot = static_cast<int>(members - 1 - i);
      slots.push_back(slot);
      check(network->open_slot(slot));
      const Napi::Float32Array values = inputs.Get(from + i).As<Napi::Float32Array>();
      check(backend->upload({values.Data(), values.ElementLength()},
                            network->input_tensor(slot, options.width, options.height)));
    }
    std::size_t size = 1;
    for (const BatchTiming& timing : network->timings()) {
      size = timing.size;
      if (size >= count) break;
    }
    check(network->run_batch(size, slots, token, pool));
    for (std::uint32_t i = 0; i < count; ++i) {
      const TensorView output = network->output_plane(slots[i]);
      Napi::Float32Array copy = Napi::Float32Array::New(info.Env(), output.size());
      check(backend->download(output, {copy.Data(), output.size()}));
      results.Set(from + i, copy);
    }
  }
  return results;
}

/// (runtimePath, file, width, height) → what is seen of three slots in the memory of the host as a
/// device: bytes that are in use when the network is opened and when the last slot is; the codes of
/// opening that slot without and with memory and of running it; blocks that are not released.
Napi::Value open_slots(const Napi::CallbackInfo& info) {
  ort::NetworkOptions options;
  check_status(info, network_options(info, options));
  options.slots = 3;
  const CancelToken token;
  const Napi::Object result = Napi::Object::New(info.Env());
  {
    Device device(host_device(), 0);
    options.memory = &device;
    std::unique_ptr<ort::Network> network;
    check_status(info, ort::Network::open(options, token, network));
    const auto used = [&] { return static_cast<double>(device.stats().used_bytes); };
    result.Set("opened", used());
    // The input, then the output.
    Napi::Array refused = Napi::Array::New(info.Env());
    for (int call = 1; call <= 2; ++call) {
      fail_at(Fault::kMemory, call);
      refused.Set(static_cast<std::uint32_t>(call - 1),
                  static_cast<int>(network->open_slot(2).code()));
      fail_at(Fault::kNothing, 0);
    }
    result.Set("refused", refused);
    result.Set("afterwards", used());
    for (int i = 0; i < 2; ++i) check_status(info, network->open_slot(2));
    result.Set("last", used());
    result.Set("run", static_cast<int>(network->run(2, token).code()));
    result.Set("check", static_cast<int>(network->check(token).code()));
  }
  result.Set("held", static_cast<double>(held_by_host_device()));
  return result;
}

/// A program for a GPU (file, width, height) on the host as a device, and one run of all inputs
/// together.
Status run_program(const GpuNetworkOptions& options, const Napi::Array& inputs, Device& device,
                   std::unique_ptr<Network>& network, Napi::Array& planes) {
  const CancelToken token;
  ThreadPool pool(0);
  const std::unique_ptr<Backend> backend = make_device_backend(device, pool);
  CUTOUT_RETURN_IF_ERROR(GpuNetwork::open(options, device, token, network));
  std::vector<int> slots;
  for (std::uint32_t i = 0; i < inputs.Length(); ++i) {
    // Not in the order of their numbers.
    const int slot = options.slots - 1 - static_cast<int>(i);
    slots.push_back(slot);
    CUTOUT_RETURN_IF_ERROR(network->open_slot(slot));
    const Napi::Float32Array values = inputs.Get(i).As<Napi::Float32Array>();
    CUTOUT_RETURN_IF_ERROR(
        backend->upload({values.Data(), values.ElementLength()},
                        network->input_tensor(slot, options.width, options.height)));
  }
  CUTOUT_RETURN_IF_ERROR(network->run_batch(slots.size(), slots, token, pool));
  for (std::uint32_t i = 0; i < inputs.Length(); ++i) {
    const TensorView output = network->output_plane(slots[i]);
    Napi::Float32Array copy = Napi::Float32Array::New(planes.Env(), output.size());
    CUTOUT_RETURN_IF_ERROR(backend->download(output, {copy.Data(), output.size()}));
    planes.Set(i, copy);
  }
  return {};
}

GpuNetworkOptions program_options(const Napi::CallbackInfo& info) {
  GpuNetworkOptions options;
  options.path = text(info[0]);
  options.width = number(info[1]);
  options.height = number(info[2]);
  return options;
}

/// (file, width, height, largestBatch, inputs: Float32Array[]) → status, sizes of batches that were
/// timed, the planes of the inputs, and blocks that are not released.
Napi::Value gpu_network(const Napi::CallbackInfo& info) {
  GpuNetworkOptions options = program_options(info);
  options.largest_batch = number(info[3]);
  options.slots = options.largest_batch;
  Napi::Array planes = Napi::Array::New(info.Env());
  Napi::Array sizes = Napi::Array::New(info.Env());
  Napi::Object result;
  {
    Device device(host_device(), 0);
    std::unique_ptr<Network> network;
    const Status status = run_program(options, info[4].As<Napi::Array>(), device, network, planes);
    result = from_status(info.Env(), status).As<Napi::Object>();
    if (network != nullptr) {
      for (const BatchTiming& timing : network->timings())
        sizes.Set(sizes.Length(), static_cast<double>(timing.size));
    }
  }
  result.Set("sizes", sizes);
  result.Set("planes", planes);
  result.Set("held", static_cast<double>(held_by_host_device()));
  return result;
}

/// (file, width, height, input) → calls of the device that were made to fail, one after the other,
/// the codes of what came of it, and blocks that are not released.
Napi::Value gpu_network_faults(const Napi::CallbackInfo& info) {
  GpuNetworkOptions options = program_options(info);
  Napi::Array inputs = Napi::Array::New(info.Env(), 1);
  inputs.Set(0U, info[3]);
  Napi::Array codes = Napi::Array::New(info.Env());
  int call = 1;
  for (;; ++call) {
    Napi::Array planes = Napi::Array::New(info.Env());
    Device device(host_device(), 0);
    std::unique_ptr<Network> network;
    fail_at(Fault::kOnce, call);
    const Status status = run_program(options, inputs, device, network, planes);
    const bool none = calls_that_could_fail() < call;
    fail_at(Fault::kNothing, 0);
    if (none) break;
    codes.Set(codes.Length(), static_cast<int>(status.code()));
  }
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("calls", call - 1);
  result.Set("codes", codes);
  result.Set("held", static_cast<double>(held_by_host_device()));
  return result;
}

/// (library, number) → [used, total] in bytes, or undefined
Napi::Value use(const Napi::CallbackInfo& info) {
  const std::string library = text(info[0]);
  const std::array names{library.c_str()};
  const std::optional<ort::DeviceUse> found = ort::device_use(number(info[1]), names);
  if (!found) return info.Env().Undefined();
  Napi::Array result = Napi::Array::New(info.Env(), 2);
  result.Set(0U, static_cast<double>(found->used));
  result.Set(1U, static_cast<double>(found->total));
  return result;
}

/// (runtimePath, file, width, height, batches: number[], limit, total, uses: number[]) → status of
/// opening the network while the device's use is one of `uses` after the other, the sizes that were
/// opened, and what was reserved then, and after the network was closed.
Napi::Value open_within(const Napi::CallbackInfo& info) {
  ort::NetworkOptions options;
  if (const Status status = batch_options(info, options); !status.ok()) {
    return from_status(info.Env(), status);
  }
  options.timed = true;
  const auto limit = static_cast<std::uint64_t>(info[5].As<Napi::Number>().Int64Value());
  const auto total = static_cast<std::uint64_t>(info[6].As<Napi::Number>().Int64Value());
  const Napi::Array uses = info[7].As<Napi::Array>();
  std::uint32_t asked = 0;
  const auto measure = [&]() -> std::optional<ort::DeviceUse> {
    if (asked == uses.Length()) return {};
    const double used = uses.Get(asked++).As<Napi::Number>().DoubleValue();
    return ort::DeviceUse{static_cast<std::uint64_t>(used), total};
  };
  const auto memory = std::make_shared<ort::DeviceMemoryBudget>(limit, measure);
  options.budget = memory;
  std::unique_ptr<ort::Network> network;
  const Status status = ort::Network::open(options, CancelToken(), network);
  Napi::Object result = from_status(info.Env(), status).As<Napi::Object>();
  Napi::Array sizes = Napi::Array::New(info.Env());
  if (network != nullptr) {
    for (const BatchTiming& timing : network->timings())
      sizes.Set(sizes.Length(), static_cast<double>(timing.size));
    ThreadPool pool(0);
    const std::vector<int> slots{0};
    result.Set("tooLarge",
               static_cast<int>(network->run_batch(64, slots, CancelToken(), pool).code()));
  }
  result.Set("sizes", sizes);
  result.Set("reserved", static_cast<double>(memory->reserved()));
  result.Set("limit", static_cast<double>(memory->limit()));
  result.Set("asked", asked);
  network.reset();
  result.Set("after", static_cast<double>(memory->reserved()));
  return result;
}

/// The file in which the engine of an addon that lies where this one does looks for the kernels.
Napi::Value library_file(const Napi::CallbackInfo& info) {
  return Napi::String::New(info.Env(), cuda::library_file());
}

/// (file) → status with whether there are kernels, and the lines of the log
Napi::Value kernels(const Napi::CallbackInfo& info) {
  ort::take_log();
  const cuda::Table* found = nullptr;
  const Status status = open_gpu_kernels(text(info[0]), found);
  Napi::Object result = from_status(info.Env(), status).As<Napi::Object>();
  result.Set("found", found != nullptr);
  std::string log;
  for (const ort::LogLine& line : ort::take_log()) log += line.text + "\n";
  result.Set("log", log);
  return result;
}

Napi::Object init(Napi::Env env, Napi::Object exports) {
  exports.Set("find", Napi::Function::New<&find>(env));
  exports.Set("check", Napi::Function::New<&check>(env));
  exports.Set("failure", Napi::Function::New<&failure>(env));
  exports.Set("failureOnCpu", Napi::Function::New<&failure_on_cpu>(env));
  exports.Set("nodes", Napi::Function::New<&nodes>(env));
  exports.Set("options", Napi::Function::New<&options>(env));
  exports.Set("libraryFile", Napi::Function::New<&library_file>(env));
  exports.Set("kernels", Napi::Function::New<&kernels>(env));
  exports.Set("run", Napi::Function::New<&run>(env));
  exports.Set("use", Napi::Function::New<&use>(env, "use"));
  exports.Set("openWithin", Napi::Function::New<&open_within>(env, "openWithin"));
  exports.Set("buildEngine", Napi::Function::New<&build_engine>(env, "buildEngine"));
  exports.Set("capabilities", Napi::Function::New<&capabilities>(env, "capabilities"));
  exports.Set("openSlots", Napi::Function::New<&open_slots>(env));
  exports.Set("runBatches", Napi::Function::New<&run_batches>(env));
  exports.Set("gpuNetwork", Napi::Function::New<&gpu_network>(env));
  exports.Set("gpuNetworkFaults", Napi::Function::New<&gpu_network_faults>(env));
  return exports;
}

}  // namespace

}  // namespace cutout::test

static Napi::Object Init(Napi::Env env, Napi::Object exports) {
  return cutout::test::init(env, exports);
}

NODE_API_MODULE(cutout_gpu_test, Init)
