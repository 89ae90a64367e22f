#include "completion.h"

#include <exception>
#include <new>

#include "results.h"

namespace cutout::binding {

Completion::Completion(Napi::Env env)
    : channel_(Channel::New(env, "cutout", /*maxQueueSize=*/0, /*initialThreadCount=*/1, this)) {
  channel_.Unref(env);
}

Napi::Promise Completion::enter(Napi::Env env, const std::vector<Napi::Object>& pinned,
                                std::function<void()> on_settle, std::unique_ptr<Outcome> outcome) {
  PendingPromise entry{
      Napi::Promise::Deferred::New(env), {}, std::move(on_settle), std::move(outcome)};
  for (const Napi::Object& object : pinned) entry.pinned.push_back(Napi::Persistent(object));
  const Napi::Promise promise = entry.deferred.Promise();
  const std::uint64_t number = next_++;
  entry.outcome->number = number;
  pending_.emplace(number, std::move(entry));
  if (pending_.size() == 1) channel_.Ref(env);
  return promise;
}

void Completion::post(Outcome& outcome) {
  // Fails only while the environment is torn down; the promise never settles then.
  static_cast<void>(channel_.NonBlockingCall(&outcome));
}

void Completion::shut_down() {
  channel_.Release();
  pending_.clear();
}

void Completion::call_js(Napi::Env env, Napi::Function, Completion* self, Outcome* outcome) {
  // Without an environment the queue is only being emptied, and its outcomes are already deleted.
  if (static_cast<napi_env>(env) == nullptr) return;
  try {
    self->settle(env, outcome->number);
  } catch (const std::exception&) {
    // A terminating environment refuses JavaScript; an exception from here would abort the process.
  }
}

void Completion::settle(Napi::Env env, std::uint64_t number) {
  const auto found = pending_.find(number);
  if (found == pending_.end()) return;
  const PendingPromise entry = std::move(found->second);
  pending_.erase(found);
  if (pending_.empty()) channel_.Unref(env);
  entry.on_settle();
  Outcome& outcome = *entry.outcome;
  if (!outcome.status.ok()) {
    entry.deferred.Reject(make_error(env, outcome.status).Value());
    return;
  }
  try {
    entry.deferred.Resolve(outcome.make(env));
  } catch (const Napi::Error& error) {
    entry.deferred.Reject(error.Value());
  } catch (const std::bad_alloc&) {
    entry.deferred.Reject(make_error(env, Status(Code::kOutOfMemory)).Value());
  }
}

}  // namespace cutout::binding
