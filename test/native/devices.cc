#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "images.h"
#include "native/other_backends.h"
#include "native/plans.h"
#include "ort/runtime.h"
#include "pipeline/device_backend.h"
#include "pipeline/device_pool.h"
#include "pipeline/gpu_network.h"
#include "registry.h"
#include "stress/device/host_device.h"

namespace cutout::test {

namespace {

constexpr int kSlots = 6;  // of a network, and jobs at a time

/// A network by Cutout's own kernels.
Status open_program(const NetworkSpec& spec, Device& device, const CancelToken& stop,
                    std::unique_ptr<Network>& network) {
  GpuNetworkOptions options;
  options.path = spec.path;
  options.width = spec.input.width;
  options.height = spec.input.height;
  options.slots = kSlots;
  options.largest_batch = 2;
  return GpuNetwork::open(options, device, stop, network);
}

/// Mattes of one image with one network on several host devices.
class Devices {
 public:
  /// `numbers`: of the host devices; empty: one device whose steps run on the CPU.
  Devices(const Napi::CallbackInfo& info, std::vector<int> numbers)
      : devices_(numbers.empty() ? nullptr : &host_device(),
                 numbers.empty() ? std::vector<int>{0} : numbers),
        image_(to_image(info[2])),
        plan_(to_plan(info[3].As<Napi::Object>())) {
    const Status runtime = ort::open_runtime(info[0].ToString().Utf8Value());
    if (!runtime.ok()) throw Napi::Error::New(info.Env(), runtime.message());
    Replicas::Options options;
    options.spec = to_spec(info[1].As<Napi::Object>());
    options.devices = numbers.empty() ? 1 : numbers.size();
    options.first_check = std::chrono::milliseconds(1);
    options.open = [this, spec = options.spec](std::size_t device, const CancelToken& stop,
                                               std::unique_ptr<Network>& network) {
      if (spec.gpu_program) return open_program(spec, *devices_.memory(device), stop, network);
      ort::NetworkOptions of_network;
      of_network.path = spec.path;
      of_network.width = spec.input.width;
      of_network.height = spec.input.height;
      of_network.slots = kSlots;
      of_network.timed = true;
      of_network.batches = {2};
      of_network.memory = devices_.memory(device);
      return ort::Network::open(of_network, stop, network);
    };
    const Status opened = Replicas::open(std::move(options), pool_, token_, network_);
    if (!opened.ok()) throw Napi::Error::New(info.Env(), opened.message());
  }

  struct Made {
    Status status;
    std::vector<std::uint8_t> pixels;
  };

  Made run() {
    Made made;
    made.pixels.assign(image_.data,
                       image_.data + static_cast<std::ptrdiff_t>(image_.stride) * image_.height);
    const MatteRequest job{
        {made.pixels.data(), image_.width, image_.height, image_.stride}, plan_, *network_, {}, {}};
    MatteResult result;
    made.status = caught([&] { return devices_.run(job, pool_, token_, result); });
    return made;
  }

  std::vector<Made> run_at_once() {
    std::vector<Made> all(kSlots);
    std::vector<std::thread> threads;
    for (Made& made : all) threads.emplace_back([this, &made] { made = run(); });
    for (std::thread& thread : threads) thread.join();
    return all;
  }

  /// Bytes of a device that are in use; without jobs those of the network.
  [[nodiscard]] std::size_t used(std::size_t device) const {
    return devices_.memory(device)->stats().used_bytes;
  }
  /// Opens the last slot on a device; the bytes that it takes.
  [[nodiscard]] std::size_t open_last_slot(std::size_t device) {
    const std::size_t before = used(device);
    const Status opened = network_->on(device).network->open_slot(kSlots - 1);
    return opened.ok() ? used(device) - before : 0;
  }

  [[nodiscard]] bool works(std::size_t device) const {
    return network_->work()[device].lost.ok() && network_->use(device).owns_lock();
  }
  [[nodiscard]] std::uint64_t losses(std::size_t device) const {
    return network_->work()[device].losses;
  }

  /// False if that takes too long.
  [[nodiscard]] bool wait_until_all_work(std::size_t devices) const {
    const Clock::time_point end = Clock::now() + std::chrono::seconds(20);
    for (std::size_t device = 0; device < devices; ++device) {
      while (!works(device)) {
        if (Clock::now() > end) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
    return true;
  }

 private:
  CancelToken token_;
  ThreadPool pool_{0};
  DevicePool devices_;
  const ImageView image_;
  const MattePlan plan_;
  std::shared_ptr<Replicas> network_;
};

/// A device that asks for nothing behind the run of a network.
class ReadingApart final : public DelegatingBackend {
 public:
  using DelegatingBackend::DelegatingBackend;
  void expect_answer(Network&, int, NetworkOutput, const Box&) override {}
};

/// The matte with the steps around the network on the CPU; of a program, which only a device runs,
/// on one, its answer read apart, and its work done at once.
std::vector<std::uint8_t> expected(const Napi::CallbackInfo& info) {
  const NetworkSpec spec = to_spec(info[1].As<Napi::Object>());
  if (!spec.gpu_program) return Devices(info, {}).run().pixels;
  set_lateness(Lateness::kAtOnce);
  const CancelToken token;
  ThreadPool pool(0);
  Device device(host_device(), 0);
  LoadedNetwork loaded;
  loaded.spec = spec;
  const std::unique_ptr<Backend> backend = make_device_backend(device, pool);
  ReadingApart apart(*backend);
  const ImageView image = to_image(info[2]);
  const MattePlan plan = to_plan(info[3].As<Napi::Object>());
  std::vector<std::uint8_t> pixels(
      image.data, image.data + static_cast<std::ptrdiff_t>(image.stride) * image.height);
  MatteResult result;
  Status status = open_program(spec, device, token, loaded.network);
  if (status.ok()) {
    status =
        make_matte({{pixels.data(), image.width, image.height, image.stride}, plan, loaded, {}, {}},
                   {apart, pool, 0, token}, result);
  }
  set_lateness(Lateness::kAtWait);
  if (!status.ok()) throw Napi::Error::New(info.Env(), status.message());
  return pixels;
}

Lateness to_lateness(const Napi::Value& value) {
  const std::string name = value.ToString().Utf8Value();
  return name == "atOnce"    ? Lateness::kAtOnce
         : name == "anyTime" ? Lateness::kAnyTime
                             : Lateness::kAtWait;
}

/// shareOfDevices(runtime, network, image, plan, 'atWait' | 'atOnce' | 'anyTime'): makes mattes at
/// the same time on two devices, whose work is done then; how many of the mattes are right, and
/// whether each device did some of the work.
Napi::Value share_of_devices(const Napi::CallbackInfo& info) {
  const std::vector<std::uint8_t> right = expected(info);
  const std::vector<int> numbers{1, 3};
  std::vector<std::size_t> before;
  for (const int number : numbers) before.push_back(work_of_host_device(number));
  Napi::Object result = Napi::Object::New(info.Env());
  int same = 0;
  set_lateness(to_lateness(info[4]));
  {
    Devices devices(info, numbers);
    for (const Devices::Made& made : devices.run_at_once())
      same += made.status.ok() && made.pixels == right ? 1 : 0;
  }
  set_lateness(Lateness::kAtWait);
  Napi::Array worked = Napi::Array::New(info.Env());
  for (std::size_t i = 0; i < numbers.size(); ++i)
    worked.Set(static_cast<std::uint32_t>(i), work_of_host_device(numbers[i]) > before[i]);
  result.Set("same", same);
  result.Set("worked", worked);
  result.Set("held", static_cast<double>(held_by_host_device()));
  return result;
}

/// slotsOfDevices(runtime, network, image, plan): the slots that two devices have opened in
/// addition to the first one, after jobs one after the other and after kSlots jobs at the same
/// time; NaN if the last one was open already.
Napi::Value slots_of_devices(const Napi::CallbackInfo& info) {
  Devices devices(info, {0, 1});
  const std::array opened{devices.used(0), devices.used(1)};
  const auto more = [&] {
    return std::array{devices.used(0) - opened[0], devices.used(1) - opened[1]};
  };
  for (int i = 0; i < kSlots; ++i) (void)devices.run();
  const auto in_series = more();
  (void)devices.run_at_once();
  const auto at_once = more();
  Napi::Object result = Napi::Object::New(info.Env());
  Napi::Array of_series = Napi::Array::New(info.Env());
  Napi::Array of_all = Napi::Array::New(info.Env());
  for (std::uint32_t device = 0; device < 2; ++device) {
    const auto slot = static_cast<double>(devices.open_last_slot(device));
    of_series.Set(device, static_cast<double>(in_series[device]) / slot);
    of_all.Set(device, static_cast<double>(at_once[device]) / slot);
  }
  result.Set("inSeries", of_series);
  result.Set("atOnce", of_all);
  return result;
}

/// failEachCall(runtime, network, image, plan, 'once' | 'lost', all): each call of the first
/// device, or of all, fails in turn while a matte is made. What was seen: faults as sentences, and
/// how many jobs were made on the other device and how many were given up.
Napi::Value fail_each_call(const Napi::CallbackInfo& info) {
  const std::vector<std::uint8_t> right = expected(info);
  const Fault fault = info[4].ToString().Utf8Value() == "once" ? Fault::kOnce : Fault::kLost;
  const bool all = info[5].ToBoolean();
  int moved = 0;
  int given_up = 0;
  std::string wrong;
  const auto expect = [&](bool condition, int call, const char* what) {
    if (!condition && wrong.empty()) wrong = "call " + std::to_string(call) + ": " + what;
  };
  for (int call = 1; wrong.empty(); ++call) {
    bool reached = false;
    {
      Devices devices(info, {0, 1});
      fail_at(fault, call, all ? kAnyDevice : 0);
      const Devices::Made made = devices.run();
      reached = calls_that_could_fail() >= call;
      const bool working = devices.works(0);  // first: its thread may take note of a loss meanwhile
      const bool lost = !working || devices.losses(0) > 0;
      if (made.status.ok()) {
        expect(made.pixels == right, call, "another result");
        if (lost) ++moved;
      } else {
        expect(made.status.code() == Code::kDevice, call, made.status.message());
        expect(lost, call, "the device is not lost");
        ++given_up;
      }
      if (fault == Fault::kLost && lost) {
        // It still fails, and nobody uses it; without any device jobs end at once.
        const Devices::Made next = devices.run();
        expect(all ? next.status.code() == Code::kDevice : next.status.ok() && next.pixels == right,
               call, "the next job, on the device that works");
      }
      fail_at(Fault::kNothing, 0);
      expect(devices.wait_until_all_work(2), call, "the device is not used again");
      for (const Devices::Made& after : devices.run_at_once())
        expect(after.status.ok() && after.pixels == right, call, "a job after it works again");
      expect(queued_on_host_device() == 0, call, "work is left in a queue");
    }
    expect(held_by_host_device() == 0, call, "memory or a stream is leaked");
    if (!reached) break;
  }
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("wrong", wrong);
  result.Set("moved", moved);
  result.Set("givenUp", given_up);
  return result;
}

/// failAmongJobs(runtime, network, image, plan, calls): each of so many calls of the first device
/// fails in turn while kSlots jobs begin at the same time, most of them in slots that they open.
/// What was seen: faults as sentences, and how often the device was lost.
Napi::Value fail_among_jobs(const Napi::CallbackInfo& info) {
  const std::vector<std::uint8_t> right = expected(info);
  const int calls = info[4].ToNumber().Int32Value();
  int losses = 0;
  std::string wrong;
  const auto expect = [&](bool condition, int call, const char* what) {
    if (!condition && wrong.empty()) wrong = "call " + std::to_string(call) + ": " + what;
  };
  for (int call = 1; call <= calls && wrong.empty(); ++call) {
    {
      Devices devices(info, {0, 1});
      fail_at(Fault::kOnce, call, 0);
      for (const Devices::Made& made : devices.run_at_once()) {
        // One that was given up while its image came back has no other device.
        expect(made.status.ok() ? made.pixels == right : made.status.code() == Code::kDevice, call,
               "another result, or another error");
      }
      fail_at(Fault::kNothing, 0);
      losses += devices.works(0) && devices.losses(0) == 0 ? 0 : 1;
      expect(devices.wait_until_all_work(2), call, "the device is not used again");
      for (const Devices::Made& after : devices.run_at_once())
        expect(after.status.ok() && after.pixels == right, call, "a job after it works again");
    }
    expect(held_by_host_device() == 0, call, "memory or a stream is leaked");
  }
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("wrong", wrong);
  result.Set("losses", losses);
  return result;
}

}  // namespace

CUTOUT_TEST_MODULE([](Napi::Env env, Napi::Object exports) {
  exports.Set("shareOfDevices", Napi::Function::New(env, share_of_devices));
  exports.Set("slotsOfDevices", Napi::Function::New(env, slots_of_devices));
  exports.Set("failAmongJobs", Napi::Function::New(env, fail_among_jobs));
  exports.Set("failEachCall", Napi::Function::New(env, fail_each_call));
});

}  // namespace cutout::test
