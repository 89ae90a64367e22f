#include <memory>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "images.h"
#include "native/backend_contract.h"
#include "native/other_backends.h"
#include "native/plans.h"
#include "ort/runtime.h"
#include "pipeline/device_backend.h"
#include "pipeline/matte.h"
#include "registry.h"
#include "stress/device/host_device.h"

namespace cutout::test {

namespace {

void check(Napi::Env env, const Status& status) {
  if (!status.ok()) throw Napi::Error::New(env, status.message());
}

Napi::Array from_strings(Napi::Env env, const std::vector<std::string>& strings) {
  Napi::Array array = Napi::Array::New(env, strings.size());
  for (std::uint32_t i = 0; i < strings.size(); ++i) array.Set(i, strings[i]);
  return array;
}

/// contractFaults('cpu' | 'far' | 'device' | the name of a kernel that is faulty, threads):
/// sentences.
Napi::Value contract_faults_js(const Napi::CallbackInfo& info) {
  const std::string which = info[0].ToString().Utf8Value();
  ThreadPool pool(info[1].ToNumber().Int32Value());
  const std::unique_ptr<Backend> cpu = make_cpu_backend(pool);
  if (which == "cpu") return from_strings(info.Env(), contract_faults(*cpu));
  if (which == "far") {
    FarBackend far(*cpu);
    return from_strings(info.Env(), contract_faults(far));
  }
  if (which == "device") {
    Device device(host_device(), 0);
    return from_strings(info.Env(), contract_faults(*make_device_backend(device, pool)));
  }
  FaultyBackend faulty(*cpu, which);
  return from_strings(info.Env(), contract_faults(faulty));
}

/// What a device tensor is to code that wants values on the host: the message.
Napi::Value read_device_tensor_js(const Napi::CallbackInfo& info) {
  float value = 1;
  TensorView tensor = host_tensor({&value, 1}, 1, 1, 1);
  tensor.placement = Placement::kDevice;
  const Status status = caught([&]() -> Status {
    host_floats(tensor)[0] = 2;
    return {};
  });
  return Napi::String::New(info.Env(), status.message());
}

/// Opens a network with one slot, whose values lie on the device if there is one.
void open_network(Napi::Env env, const Napi::Value& from, Device* device, LoadedNetwork& loaded) {
  loaded.spec = to_spec(from.As<Napi::Object>());
  ort::NetworkOptions options;
  options.path = loaded.spec.path;
  options.width = loaded.spec.input.width;
  options.height = loaded.spec.input.height;
  options.slots = 1;
  options.memory = device;
  check(env, ort::Network::open(options, CancelToken(), loaded.network));
}

/// stagesOf(runtime, network, image, plan, 'cpu' | 'device', second network?): makes the matte
/// twice, with what the first run kept, on the same pixels. { first, second }: the kernels of each,
/// their runs of the network and pixels. On the device the networks' values lie there too.
Napi::Value stages_of_js(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  check(env, ort::open_runtime(info[0].ToString().Utf8Value()));
  Device device(host_device(), 0);
  const bool on_device = info[4].ToString().Utf8Value() == "device";
  const CancelToken token;
  LoadedNetwork loaded;
  open_network(env, info[1], on_device ? &device : nullptr, loaded);
  LoadedNetwork other;
  if (info[5].IsObject()) open_network(env, info[5], on_device ? &device : nullptr, other);
  const ImageView image = to_image(info[2]);
  MattePlan plan = to_plan(info[3].As<Napi::Object>());
  ThreadPool pool(0);
  const std::unique_ptr<Backend> used =
      on_device ? make_device_backend(device, pool) : make_cpu_backend(pool);
  const std::size_t bytes =
      static_cast<std::size_t>(image.stride) * static_cast<std::size_t>(image.height);
  MatteResult kept;
  Napi::Object result = Napi::Object::New(env);
  for (const char* which : {"first", "second"}) {
    std::vector<std::uint8_t> pixels(image.data, image.data + bytes);
    RecordingBackend backend(*used);
    MatteResult made;
    MatteJob job{{pixels.data(), image.width, image.height, image.stride}, plan, loaded, {}, {}};
    if (other.network != nullptr) job.second = other;
    check(env, make_matte(job, {backend, pool, 0, token}, made));
    Napi::Object run = Napi::Object::New(env);
    run.Set("kernels", from_strings(env, backend.calls()));
    run.Set("runs", made.runs);
    run.Set("uncertainty", made.uncertainty);
    run.Set("secondLook", static_cast<int>(made.second_look));
    run.Set("pixels", Napi::Buffer<std::uint8_t>::Copy(env, pixels.data(), pixels.size()));
    result.Set(which, run);
    if (!made.output.empty()) {
      kept = std::move(made);
      plan.cached = {kept.output, kept.output_width, kept.output_height, kept.output_view};
    }
  }
  return result;
}

}  // namespace

CUTOUT_TEST_MODULE([](Napi::Env env, Napi::Object exports) {
  exports.Set("contractFaults", Napi::Function::New(env, contract_faults_js));
  exports.Set("readDeviceTensor", Napi::Function::New(env, read_device_tensor_js));
  exports.Set("stagesOf", Napi::Function::New(env, stages_of_js));
});

}  // namespace cutout::test
