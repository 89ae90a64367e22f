#include <napi.h>

#include <string>
#include <vector>

#include "sched/batch_queue.h"
#include "sched/simulation.h"

/// The batch queue on the caller's clock, for test/sched and `npm run bench -- batching`. Times and
/// durations are nanoseconds; test/sched/schedAddon.ts has the types.
namespace cutout::test {

namespace {

double number(const Napi::Value& value) { return value.As<Napi::Number>().DoubleValue(); }
std::size_t index(const Napi::Value& value) { return static_cast<std::size_t>(number(value)); }
std::uint64_t id_of(const Napi::Value& value) { return static_cast<std::uint64_t>(number(value)); }

Clock::duration duration(const Napi::Value& value) {
  return Clock::duration(value.As<Napi::Number>().Int64Value());
}

Clock::time_point time(const Napi::Value& value) { return Clock::time_point(duration(value)); }

double ticks(Clock::time_point at) { return static_cast<double>(at.time_since_epoch().count()); }

template <typename Number>
Napi::Array array(Napi::Env env, const std::vector<Number>& values) {
  Napi::Array result = Napi::Array::New(env, values.size());
  for (std::uint32_t i = 0; i < values.size(); ++i)
    result.Set(i, Napi::Number::New(env, static_cast<double>(values[i])));
  return result;
}

/// [[size, latency], …]
std::vector<BatchBucket> buckets_of(const Napi::Value& value) {
  std::vector<BatchBucket> buckets;
  const Napi::Array rows = value.As<Napi::Array>();
  for (std::uint32_t i = 0; i < rows.Length(); ++i) {
    const Napi::Array row = rows.Get(i).As<Napi::Array>();
    buckets.push_back({index(row.Get(0U)), duration(row.Get(1U))});
  }
  return buckets;
}

class Queue : public Napi::ObjectWrap<Queue> {
 public:
  /// (buckets, maxDelay)
  explicit Queue(const Napi::CallbackInfo& info)
      : Napi::ObjectWrap<Queue>(info), queue_(buckets_of(info[0]), duration(info[1])) {}

  static Napi::Function define(Napi::Env env) {
    return DefineClass(
        env, "Queue",
        {InstanceMethod<&Queue::push>("push"), InstanceMethod<&Queue::cancel>("cancel"),
         InstanceMethod<&Queue::next>("next"), InstanceMethod<&Queue::finish>("finish"),
         InstanceMethod<&Queue::lose>("lose"), InstanceMethod<&Queue::restore>("restore"),
         InstanceMethod<&Queue::shrink>("shrink"), InstanceMethod<&Queue::retry>("retry")});
  }

 private:
  /// (id, arrival)
  Napi::Value push(const Napi::CallbackInfo& info) {
    return Napi::Boolean::New(info.Env(), queue_.push({id_of(info[0]), time(info[1])}));
  }

  Napi::Value cancel(const Napi::CallbackInfo& info) {
    const auto name = [&] {
      switch (queue_.cancel(id_of(info[0]))) {
        case BatchQueue::Cancelled::kUnknown:
          return "unknown";
        case BatchQueue::Cancelled::kRemoved:
          return "removed";
        case BatchQueue::Cancelled::kInBatch:
          return "in batch";
        default:
          return "batch abandoned";
      }
    };
    return Napi::String::New(info.Env(), name());
  }

  Napi::Value next(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    const BatchQueue::Step step = queue_.next(time(info[0]));
    Napi::Object result = Napi::Object::New(env);
    if (!step.members.empty()) {
      result.Set("bucket", static_cast<double>(step.bucket));
      result.Set("members", array(env, step.members));
    }
    if (step.wake) result.Set("wake", ticks(*step.wake));
    return result;
  }

  static Napi::Value from_ended(Napi::Env env, const BatchQueue::Ended& ended) {
    Napi::Object result = Napi::Object::New(env);
    result.Set("runs", array(env, ended.runs));
    result.Set("cancelled", array(env, ended.cancelled));
    return result;
  }

  Napi::Value finish(const Napi::CallbackInfo& info) {
    return from_ended(info.Env(), queue_.finish());
  }

  Napi::Value lose(const Napi::CallbackInfo& info) { return from_ended(info.Env(), queue_.lose()); }

  Napi::Value shrink(const Napi::CallbackInfo& info) {
    return Napi::Boolean::New(info.Env(), queue_.shrink(index(info[0])));
  }

  Napi::Value retry(const Napi::CallbackInfo& info) { return array(info.Env(), queue_.retry()); }

  void restore(const Napi::CallbackInfo&) { queue_.restore(); }

  BatchQueue queue_;
};

Napi::Value run_simulation(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const Napi::Object given = info[0].As<Napi::Object>();
  Load load;
  load.devices = index(given.Get("devices"));
  load.buckets = buckets_of(given.Get("buckets"));
  load.max_delay = duration(given.Get("maxDelay"));
  load.runs_per_second = number(given.Get("runsPerSecond"));
  load.runs = index(given.Get("runs"));
  load.seed = id_of(given.Get("seed"));
  const Outcome outcome = simulate(load);
  Napi::Object result = Napi::Object::New(env);
  result.Set("milliseconds", array(env, outcome.milliseconds));
  result.Set("batches", array(env, outcome.batches));
  result.Set("members", array(env, outcome.members));
  result.Set("seconds", outcome.seconds);
  result.Set("busy", outcome.busy);
  return result;
}

}  // namespace

}  // namespace cutout::test

static Napi::Object Init(Napi::Env env, Napi::Object exports) {
  exports.Set("Queue", cutout::test::Queue::define(env));
  exports.Set("simulate", Napi::Function::New<&cutout::test::run_simulation>(env));
  return exports;
}

NODE_API_MODULE(cutout_sched_test, Init)
