#include "engine.h"

#include <string>
#include <utility>

#include "error.h"

namespace cutout::binding {

namespace {

std::shared_ptr<Running> start(const Napi::CallbackInfo& info) {
  std::unique_ptr<Engine> engine;
  throw_if_error(info.Env(), Engine::create(to_engine_options(info[0]), engine));
  auto running = std::make_shared<Running>(std::move(engine));
  info.Env().GetInstanceData<Instance>()->add(running);
  return running;
}

}  // namespace

Napi::Function EngineObject::define(Napi::Env env) {
  return DefineClass(
      env, "Engine",
      {InstanceMethod<&EngineObject::load>("load"), InstanceMethod<&EngineObject::matte>("matte"),
       InstanceMethod<&EngineObject::encode_png>("encodePng"),
       InstanceMethod<&EngineObject::cancel>("cancel"),
       InstanceMethod<&EngineObject::stats>("stats"),
       InstanceMethod<&EngineObject::close>("close")});
}

EngineObject::EngineObject(const Napi::CallbackInfo& info)
    : Napi::ObjectWrap<EngineObject>(info),
      completion_(info.Env().GetInstanceData<Instance>()->completion()),
      running_(start(info)) {}

Completion::Pending EngineObject::begin(std::uint64_t id, const Pixels& pixels, bool written) {
  const std::uint8_t* const first = pixels.view.data;
  const Borrowed wanted{first, first + pixels.data.ByteLength(), written};
  if (jobs_.contains(id)) {
    throw Napi::RangeError::New(Env(), "The id " + std::to_string(id) + " is in use.");
  }
  for (const auto& [other, borrowed] : jobs_) {
    const bool overlap = wanted.begin < borrowed.end && borrowed.begin < wanted.end;
    if (overlap && (written || borrowed.written)) {
      throw Napi::RangeError::New(Env(), "The pixels belong to the job " + std::to_string(other) +
                                             " until its promise settles.");
    }
  }
  jobs_.emplace(id, wanted);
  return completion_.begin(Env(), {Value(), pixels.data}, [this, id] { jobs_.erase(id); });
}

Napi::Value EngineObject::load(const Napi::CallbackInfo& info) {
  const NetworkSpec spec = to_network_spec(info[0]);
  const auto pending = completion_.begin(info.Env(), {Value()}, [] {});
  running_->engine().load(spec, [&completion = completion_, number = pending.number,
                                 name = spec.name](Status status, NetworkInfo result) {
    completion.post(number, std::move(status), [name, result = std::move(result)](Napi::Env env) {
      return from_network_info(env, name, result);
    });
  });
  return pending.promise;
}

Napi::Value EngineObject::matte(const Napi::CallbackInfo& info) {
  const std::uint64_t id = to_id(info[0]);
  const Pixels pixels = to_pixels(info[1]);
  const MatteCall call = to_matte_call(info[2], pixels.view);
  const auto pending = begin(id, pixels, /*written=*/true);
  running_->engine().matte(
      id, pixels.view, call.plan, call.network, call.deadline,
      [&completion = completion_, number = pending.number](Status status, MatteResult result) {
        completion.post(number, std::move(status),
                        [result](Napi::Env env) { return from_matte_result(env, result); });
      });
  return pending.promise;
}

Napi::Value EngineObject::encode_png(const Napi::CallbackInfo& info) {
  const std::uint64_t id = to_id(info[0]);
  const Pixels pixels = to_pixels(info[1]);
  PngCall call = to_png_call(info[2], pixels.view);
  const auto pending = begin(id, pixels, /*written=*/false);
  running_->engine().encode_png(
      id, std::move(call.job), call.deadline,
      [&completion = completion_, number = pending.number](Status status,
                                                           std::vector<std::uint8_t> png) {
        // Moved out when the value is made, which happens once.
        auto bytes = std::make_shared<std::vector<std::uint8_t>>(std::move(png));
        completion.post(number, std::move(status), [bytes = std::move(bytes)](Napi::Env env) {
          return from_bytes(env, std::move(*bytes));
        });
      });
  return pending.promise;
}

Napi::Value EngineObject::cancel(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(), running_->engine().cancel(to_id(info[0])));
}

Napi::Value EngineObject::stats(const Napi::CallbackInfo& info) {
  return from_stats(info.Env(), running_->engine().stats());
}

Napi::Value EngineObject::close(const Napi::CallbackInfo& info) {
  const std::chrono::milliseconds grace = to_grace(info[0]);
  const auto pending = completion_.begin(info.Env(), {Value()}, [] {});
  running_->close(grace, [&completion = completion_, number = pending.number] {
    completion.post(number, {}, [](Napi::Env env) { return env.Undefined(); });
  });
  return pending.promise;
}

}  // namespace cutout::binding
