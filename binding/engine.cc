#include "engine.h"

#include <memory>
#include <new>
#include <string>
#include <utility>

#include "results.h"

namespace cutout::binding {

namespace {

std::shared_ptr<EngineOwner> start(const Napi::CallbackInfo& info) {
  try {
    std::unique_ptr<Engine> engine;
    const Status status = Engine::create(to_engine_options(info[0]), engine);
    if (!status.ok()) throw make_error(info.Env(), status);
    auto owner = std::make_shared<EngineOwner>(std::move(engine));
    info.Env().GetInstanceData<Instance>()->add(owner);
    return owner;
  } catch (const std::bad_alloc&) {
    throw make_error(info.Env(), Status(Code::kOutOfMemory));
  }
}

}  // namespace

Napi::Function EngineObject::define(Napi::Env env) {
  using Self = EngineObject;
  constexpr auto kLoad = &Self::load<NetworkInfo, &to_network_spec, &Engine::load>;
  constexpr auto kLoadTypes =
      &Self::load<SubjectTypesInfo, &to_subject_types_spec, &Engine::load_subject_types>;
  constexpr auto kLoadSelector =
      &Self::load<SelectorInfo, &to_selector_spec, &Engine::load_selector>;
  constexpr auto kEmbed = &Self::job<Embedding, &to_embed_job, &Engine::embed>;
  constexpr auto kSelect = &Self::job<Selection, &to_select_job, &Engine::select>;
  constexpr auto kMatte = &Self::job<MatteResult, &to_matte_order, &Engine::matte>;
  constexpr auto kCompose = &Self::job<ComposeSummary, &to_compose_job, &Engine::compose>;
  constexpr auto kEncode = &Self::job<std::vector<std::uint8_t>, &to_png_job, &Engine::encode_png>;
  return DefineClass(
      env, "Engine",
      {InstanceMethod<&Self::async<kLoad>>("load"),
       InstanceMethod<&Self::async<kLoadTypes>>("loadSubjectTypes"),
       InstanceMethod<&Self::async<kLoadSelector>>("loadSelector"),
       InstanceMethod<&Self::async<kEmbed>>("embed"),
       InstanceMethod<&Self::async<kSelect>>("select"),
       InstanceMethod<&Self::async<&Self::unload>>("unload"),
       InstanceMethod<&Self::async<kMatte>>("matte"),
       InstanceMethod<&Self::async<kCompose>>("compose"),
       InstanceMethod<&Self::async<kEncode>>("encodePng"), InstanceMethod<&Self::cancel>("cancel"),
       InstanceMethod<&Self::stats>("stats"), InstanceMethod<&Self::gpus>("gpus"),
       InstanceMethod<&Self::async<&Self::close>>("close")});
}

EngineObject::EngineObject(const Napi::CallbackInfo& info)
    : Napi::ObjectWrap<EngineObject>(info),
      completion_(info.Env().GetInstanceData<Instance>()->completion()),
      owner_(start(info)) {}

template <EngineObject::Method kMethod>
Napi::Value EngineObject::async(const Napi::CallbackInfo& info) {
  try {
    return (this->*kMethod)(info);
  } catch (const std::bad_alloc&) {
    const auto deferred = Napi::Promise::Deferred::New(info.Env());
    deferred.Reject(make_error(info.Env(), Status(Code::kOutOfMemory)).Value());
    return deferred.Promise();
  }
}

void EngineObject::register_buffers(std::uint64_t id, const Borrowed& borrowed) {
  if (jobs_.contains(id)) {
    throw Napi::RangeError::New(Env(), "The id " + std::to_string(id) + " is in use.");
  }
  std::vector<Range> ranges;
  const auto check = [this](const Range& wanted, const Range& taken, std::uint64_t job) {
    const bool overlap = wanted.begin < taken.end && taken.begin < wanted.end;
    if (overlap && (wanted.written || taken.written)) {
      throw Napi::RangeError::New(Env(), "The pixels belong to the job " + std::to_string(job) +
                                             " until its promise settles.");
    }
  };
  for (const BufferAccess& use : borrowed) {
    const std::uint8_t* const first = use.data.Data();
    const Range wanted{first, first + use.data.ByteLength(), use.written};
    for (const Range& taken : ranges) check(wanted, taken, id);
    for (const auto& [job, all] : jobs_) {
      for (const Range& taken : all) check(wanted, taken, job);
    }
    ranges.push_back(wanted);
  }
  jobs_.emplace(id, std::move(ranges));
}

template <typename Result, typename Start>
Napi::Value EngineObject::run(const std::vector<Napi::Object>& pinned,
                              std::function<void()> on_settle, Start start) {
  const auto pending = completion_.begin<Result>(Env(), pinned, std::move(on_settle));
  try {
    start(pending.done);
  } catch (const std::bad_alloc&) {
    pending.done(Status(Code::kOutOfMemory), Result{});
  }
  return pending.promise;
}

template <typename Info, auto kRead, auto kLoad>
Napi::Value EngineObject::load(const Napi::CallbackInfo& info) {
  const auto spec = kRead(info[0]);
  return run<Info>(
      {Value()}, [] {}, [&](const auto& done) { (owner_->engine().*kLoad)(spec, done); });
}

template <typename Result, auto kRead, auto kStart>
Napi::Value EngineObject::job(const Napi::CallbackInfo& info) {
  const std::uint64_t id = to_id(info[0]);
  Borrowed borrowed;
  auto job = kRead(info, borrowed);
  std::vector<Napi::Object> pinned{Value()};
  for (const BufferAccess& use : borrowed) pinned.push_back(use.data);
  register_buffers(id, borrowed);
  try {
    return run<Result>(
        pinned, [this, id] { jobs_.erase(id); },
        [&](const auto& done) { (owner_->engine().*kStart)(id, std::move(job), done); });
  } catch (...) {
    jobs_.erase(id);
    throw;
  }
}

Napi::Value EngineObject::unload(const Napi::CallbackInfo&) {
  return run<std::monostate>(
      {Value()}, [] {}, [&](const auto& done) { owner_->engine().unload(done); });
}

Napi::Value EngineObject::close(const Napi::CallbackInfo& info) {
  const std::chrono::milliseconds grace = to_grace(info[0]);
  return run<std::monostate>(
      {Value()}, [] {}, [&](const auto& done) { owner_->close(grace, [done] { done({}, {}); }); });
}

Napi::Value EngineObject::cancel(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(), owner_->engine().cancel(to_id(info[0])));
}

Napi::Value EngineObject::stats(const Napi::CallbackInfo& info) {
  return to_js(info.Env(), owner_->engine());
}

Napi::Value EngineObject::gpus(const Napi::CallbackInfo& info) {
  return array_of(info.Env(), owner_->engine().gpus());
}

}  // namespace cutout::binding
