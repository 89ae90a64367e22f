#include "engine.h"

#include <memory>
#include <new>
#include <string>
#include <utility>

#include "error.h"
#include "results.h"

namespace cutout::binding {

namespace {

std::shared_ptr<EngineOwner> start(const Napi::CallbackInfo& info) {
  try {
    std::unique_ptr<Engine> engine;
    throw_if_error(info.Env(), Engine::create(to_engine_options(info[0]), engine));
    auto owner = std::make_shared<EngineOwner>(std::move(engine));
    info.Env().GetInstanceData<Instance>()->add(owner);
    return owner;
  } catch (const std::bad_alloc&) {
    throw make_error(info.Env(), Status(Code::kOutOfMemory));
  }
}

}  // namespace

Napi::Function EngineObject::define(Napi::Env env) {
  return DefineClass(
      env, "Engine",
      {InstanceMethod<&EngineObject::async<&EngineObject::load>>("load"),
       InstanceMethod<&EngineObject::async<&EngineObject::matte>>("matte"),
       InstanceMethod<&EngineObject::async<&EngineObject::load_subject_types>>("loadSubjectTypes"),
       InstanceMethod<&EngineObject::async<&EngineObject::load_selector>>("loadSelector"),
       InstanceMethod<&EngineObject::async<&EngineObject::embed>>("embed"),
       InstanceMethod<&EngineObject::async<&EngineObject::select>>("select"),
       InstanceMethod<&EngineObject::async<&EngineObject::unload>>("unload"),
       InstanceMethod<&EngineObject::async<&EngineObject::compose>>("compose"),
       InstanceMethod<&EngineObject::async<&EngineObject::encode_png>>("encodePng"),
       InstanceMethod<&EngineObject::cancel>("cancel"),
       InstanceMethod<&EngineObject::stats>("stats"), InstanceMethod<&EngineObject::gpus>("gpus"),
       InstanceMethod<&EngineObject::async<&EngineObject::close>>("close")});
}

EngineObject::EngineObject(const Napi::CallbackInfo& info)
    : Napi::ObjectWrap<EngineObject>(info),
      completion_(info.Env().GetInstanceData<Instance>()->completion()),
      owner_(start(info)) {}

template <EngineObject::Method method>
Napi::Value EngineObject::async(const Napi::CallbackInfo& info) {
  try {
    return (this->*method)(info);
  } catch (const std::bad_alloc&) {
    const auto deferred = Napi::Promise::Deferred::New(info.Env());
    deferred.Reject(make_error(info.Env(), Status(Code::kOutOfMemory)).Value());
    return deferred.Promise();
  }
}

void EngineObject::register_buffers(std::uint64_t id, const std::vector<BufferAccess>& uses,
                                    std::vector<Napi::Object>& pinned) {
  if (jobs_.contains(id)) {
    throw Napi::RangeError::New(Env(), "The id " + std::to_string(id) + " is in use.");
  }
  std::vector<Borrowed> borrowed;
  const auto check = [this](const Borrowed& wanted, const Borrowed& taken, std::uint64_t job) {
    const bool overlap = wanted.begin < taken.end && taken.begin < wanted.end;
    if (overlap && (wanted.written || taken.written)) {
      throw Napi::RangeError::New(Env(), "The pixels belong to the job " + std::to_string(job) +
                                             " until its promise settles.");
    }
  };
  for (const BufferAccess& use : uses) {
    const auto* const first =
        static_cast<const std::uint8_t*>(use.data.ArrayBuffer().Data()) + use.data.ByteOffset();
    const Borrowed wanted{first, first + use.data.ByteLength(), use.written};
    for (const Borrowed& taken : borrowed) check(wanted, taken, id);
    for (const auto& [job, all] : jobs_) {
      for (const Borrowed& taken : all) check(wanted, taken, job);
    }
    borrowed.push_back(wanted);
    pinned.push_back(use.data);
  }
  jobs_.emplace(id, std::move(borrowed));
}

template <typename Result, typename Start, typename Make>
Napi::Value EngineObject::run(const std::vector<Napi::Object>& pinned,
                              std::function<void()> on_settle, Start start, Make make) {
  const auto pending =
      completion_.begin<Result>(Env(), pinned, std::move(on_settle), std::move(make));
  try {
    start(pending.done);
  } catch (const std::bad_alloc&) {
    pending.done(Status(Code::kOutOfMemory), Result{});
  }
  return pending.promise;
}

template <typename Result, typename Start, typename Make>
Napi::Value EngineObject::run(std::uint64_t id, const std::vector<BufferAccess>& uses, Start start,
                              Make make) {
  std::vector<Napi::Object> pinned{this->Value()};
  register_buffers(id, uses, pinned);
  try {
    return run<Result>(
        pinned, [this, id] { jobs_.erase(id); }, std::move(start), std::move(make));
  } catch (...) {
    jobs_.erase(id);
    throw;
  }
}

Napi::Value EngineObject::load(const Napi::CallbackInfo& info) {
  const NetworkSpec spec = to_network_spec(info[0]);
  return run<NetworkInfo>(
      {Value()}, [] {}, [&](const auto& done) { owner_->engine().load(spec, done); },
      [name = spec.name](Napi::Env env, const NetworkInfo& result) {
        return from_network_info(env, name, result);
      });
}

Napi::Value EngineObject::load_subject_types(const Napi::CallbackInfo& info) {
  const SubjectTypesSpec spec = to_subject_types_spec(info[0]);
  return run<SubjectTypesInfo>(
      {Value()}, [] {}, [&](const auto& done) { owner_->engine().load_subject_types(spec, done); },
      from_subject_types_info);
}

Napi::Value EngineObject::load_selector(const Napi::CallbackInfo& info) {
  const SelectorSpec spec = to_selector_spec(info[0]);
  return run<SelectorInfo>(
      {Value()}, [] {}, [&](const auto& done) { owner_->engine().load_selector(spec, done); },
      from_selector_info);
}

Napi::Value EngineObject::embed(const Napi::CallbackInfo& info) {
  const std::uint64_t id = to_id(info[0]);
  const Pixels pixels = to_pixels(info[1]);
  const Engine::Deadline deadline = to_deadline(info[2]);
  return run<Embedding>(
      id, {{pixels.data, /*written=*/false}},
      [&](const auto& done) { owner_->engine().embed(id, pixels.view, deadline, done); },
      from_embedding);
}

Napi::Value EngineObject::select(const Napi::CallbackInfo& info) {
  const std::uint64_t id = to_id(info[0]);
  SelectCall call = to_select_call(info[1]);
  const Engine::Deadline deadline = to_deadline(info[1]);
  return run<SelectResult>(
      id, {{call.embedding, /*written=*/false}},
      [&](const auto& done) { owner_->engine().select(id, std::move(call.job), deadline, done); },
      from_select_result);
}

Napi::Value EngineObject::unload(const Napi::CallbackInfo&) {
  return run<Status>(
      {Value()}, [] {},
      [&](const auto& done) {
        owner_->engine().unload([done](Status status) { done(std::move(status), {}); });
      },
      [](Napi::Env env, const Status&) { return env.Undefined(); });
}

Napi::Value EngineObject::matte(const Napi::CallbackInfo& info) {
  const std::uint64_t id = to_id(info[0]);
  const Pixels pixels = to_pixels(info[1]);
  const MatteCall call = to_matte_call(info[2], pixels.view);
  const Engine::Deadline deadline = to_deadline(info[2]);
  std::vector<BufferAccess> uses{{pixels.data, /*written=*/true}};
  if (call.mask) uses.push_back({*call.mask, /*written=*/false});
  if (call.first_mask) uses.push_back({*call.first_mask, /*written=*/false});
  if (call.cached) uses.push_back({*call.cached, /*written=*/false});
  return run<MatteResult>(
      id, uses,
      [&](const auto& done) {
        owner_->engine().matte(id, pixels.view, call.plan, call.network, call.second, deadline,
                               done);
      },
      from_matte_result);
}

Napi::Value EngineObject::compose(const Napi::CallbackInfo& info) {
  const std::uint64_t id = to_id(info[0]);
  const Pixels pixels = to_pixels(info[1], BufferLength::kAtLeast);
  const ComposeCall call = to_compose_call(info[2], pixels);
  const Engine::Deadline deadline = to_deadline(info[2]);
  std::vector<BufferAccess> uses{{pixels.data, /*written=*/true}};
  if (call.background) uses.push_back({*call.background, /*written=*/false});
  return run<ComposeResult>(
      id, uses, [&](const auto& done) { owner_->engine().compose(id, call.job, deadline, done); },
      from_compose_result);
}

Napi::Value EngineObject::encode_png(const Napi::CallbackInfo& info) {
  const std::uint64_t id = to_id(info[0]);
  const Pixels pixels = to_pixels(info[1]);
  PngJob job = to_png_job(info[2], pixels.view);
  const Engine::Deadline deadline = to_deadline(info[2]);
  return run<std::vector<std::uint8_t>>(
      id, {{pixels.data, /*written=*/false}},
      [&](const auto& done) { owner_->engine().encode_png(id, std::move(job), deadline, done); },
      [](Napi::Env env, std::vector<std::uint8_t>& png) {
        return from_bytes(env, std::move(png));
      });
}

Napi::Value EngineObject::cancel(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(), owner_->engine().cancel(to_id(info[0])));
}

Napi::Value EngineObject::stats(const Napi::CallbackInfo& info) {
  return from_stats(info.Env(), owner_->engine());
}

Napi::Value EngineObject::gpus(const Napi::CallbackInfo& info) {
  return from_gpus(info.Env(), owner_->engine().gpus());
}

Napi::Value EngineObject::close(const Napi::CallbackInfo& info) {
  const std::chrono::milliseconds grace = to_grace(info[0]);
  return run<Status>(
      {Value()}, [] {}, [&](const auto& done) { owner_->close(grace, [done] { done({}, {}); }); },
      [](Napi::Env env, const Status&) { return env.Undefined(); });
}

}  // namespace cutout::binding
