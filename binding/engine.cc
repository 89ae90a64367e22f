#include "engine.h"

#include <memory>
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
       InstanceMethod<&EngineObject::load_subject_types>("loadSubjectTypes"),
       InstanceMethod<&EngineObject::unload>("unload"),
       InstanceMethod<&EngineObject::describe>("describe"),
       InstanceMethod<&EngineObject::compose>("compose"),
       InstanceMethod<&EngineObject::encode_png>("encodePng"),
       InstanceMethod<&EngineObject::cancel>("cancel"),
       InstanceMethod<&EngineObject::stats>("stats"),
       InstanceMethod<&EngineObject::close>("close")});
}

EngineObject::EngineObject(const Napi::CallbackInfo& info)
    : Napi::ObjectWrap<EngineObject>(info),
      completion_(info.Env().GetInstanceData<Instance>()->completion()),
      running_(start(info)) {}

Completion::Pending EngineObject::begin(std::uint64_t id, const std::vector<Use>& uses) {
  if (jobs_.contains(id)) {
    throw Napi::RangeError::New(Env(), "The id " + std::to_string(id) + " is in use.");
  }
  std::vector<Borrowed> borrowed;
  std::vector<Napi::Object> keep{Value()};
  const auto claim = [this](const Borrowed& wanted, const Borrowed& taken, std::uint64_t job) {
    const bool overlap = wanted.begin < taken.end && taken.begin < wanted.end;
    if (overlap && (wanted.written || taken.written)) {
      throw Napi::RangeError::New(Env(), "The pixels belong to the job " + std::to_string(job) +
                                             " until its promise settles.");
    }
  };
  for (const Use& use : uses) {
    const auto* const first =
        static_cast<const std::uint8_t*>(use.data.ArrayBuffer().Data()) + use.data.ByteOffset();
    const Borrowed wanted{first, first + use.data.ByteLength(), use.written};
    for (const Borrowed& taken : borrowed) claim(wanted, taken, id);
    for (const auto& [job, all] : jobs_) {
      for (const Borrowed& taken : all) claim(wanted, taken, job);
    }
    borrowed.push_back(wanted);
    keep.push_back(use.data);
  }
  jobs_.emplace(id, std::move(borrowed));
  return completion_.begin(Env(), keep, [this, id] { jobs_.erase(id); });
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

Napi::Value EngineObject::load_subject_types(const Napi::CallbackInfo& info) {
  const SubjectTypesSpec spec = to_subject_types_spec(info[0]);
  const auto pending = completion_.begin(info.Env(), {Value()}, [] {});
  running_->engine().load_subject_types(spec, [&completion = completion_, number = pending.number](
                                                  Status status, SubjectTypesInfo result) {
    completion.post(number, std::move(status),
                    [result](Napi::Env env) { return from_subject_types_info(env, result); });
  });
  return pending.promise;
}

Napi::Value EngineObject::unload(const Napi::CallbackInfo& info) {
  const auto pending = completion_.begin(info.Env(), {Value()}, [] {});
  running_->engine().unload([&completion = completion_, number = pending.number](Status status) {
    completion.post(number, std::move(status), [](Napi::Env env) { return env.Undefined(); });
  });
  return pending.promise;
}

Napi::Value EngineObject::describe(const Napi::CallbackInfo& info) {
  const std::uint64_t id = to_id(info[0]);
  const Pixels pixels = to_pixels(info[1]);
  const DescribeCall call = to_describe_call(info[2], pixels.view);
  const auto pending =
      begin(id, {{pixels.data, /*written=*/false}, {call.alpha, /*written=*/false}});
  running_->engine().describe(
      id, call.job, call.deadline,
      [&completion = completion_, number = pending.number](Status status, Description result) {
        completion.post(number, std::move(status), [result = std::move(result)](Napi::Env env) {
          return from_description(env, result);
        });
      });
  return pending.promise;
}

Napi::Value EngineObject::matte(const Napi::CallbackInfo& info) {
  const std::uint64_t id = to_id(info[0]);
  const Pixels pixels = to_pixels(info[1]);
  const MatteCall call = to_matte_call(info[2], pixels.view);
  const auto pending = begin(id, {{pixels.data, /*written=*/true}});
  running_->engine().matte(
      id, pixels.view, call.plan, call.network, call.deadline,
      [&completion = completion_, number = pending.number](Status status, MatteResult result) {
        completion.post(number, std::move(status),
                        [result](Napi::Env env) { return from_matte_result(env, result); });
      });
  return pending.promise;
}

Napi::Value EngineObject::compose(const Napi::CallbackInfo& info) {
  const std::uint64_t id = to_id(info[0]);
  const Pixels pixels = to_pixels(info[1], Room::kMoreAllowed);
  const ComposeCall call = to_compose_call(info[2], pixels);
  std::vector<Use> uses{{pixels.data, /*written=*/true}};
  if (call.background) uses.push_back({*call.background, /*written=*/false});
  const auto pending = begin(id, uses);
  running_->engine().compose(
      id, call.job, call.deadline,
      [&completion = completion_, number = pending.number](Status status, ComposeResult result) {
        completion.post(number, std::move(status),
                        [result](Napi::Env env) { return from_compose_result(env, result); });
      });
  return pending.promise;
}

Napi::Value EngineObject::encode_png(const Napi::CallbackInfo& info) {
  const std::uint64_t id = to_id(info[0]);
  const Pixels pixels = to_pixels(info[1]);
  PngCall call = to_png_call(info[2], pixels.view);
  const auto pending = begin(id, {{pixels.data, /*written=*/false}});
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
  return from_stats(info.Env(), running_->engine().stats(), Engine::kept_bytes());
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
