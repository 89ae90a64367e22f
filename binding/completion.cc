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
                                std::unique_ptr<Outcome> outcome) {
  for (const Napi::Object& object : pinned) outcome->pinned.push_back(Napi::Persistent(object));
  const Napi::Promise promise = outcome->deferred.Promise();
  Outcome* const key = outcome.get();
  pending_.emplace(key, std::move(outcome));
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
    self->settle(env, outcome);
  } catch (const std::exception&) {
    // A terminating environment refuses JavaScript; an exception from here would abort the process.
  }
}

void Completion::settle(Napi::Env env, Outcome* settled) {
  const auto found = pending_.find(settled);
  if (found == pending_.end()) return;
  const std::unique_ptr<Outcome> outcome = std::move(found->second);
  pending_.erase(found);
  if (pending_.empty()) channel_.Unref(env);
  outcome->on_settle();
  if (!outcome->status.ok()) {
    outcome->deferred.Reject(make_error(env, outcome->status).Value());
    return;
  }
  try {
    outcome->deferred.Resolve(outcome->make(env));
  } catch (const Napi::Error& error) {
    outcome->deferred.Reject(error.Value());
  } catch (const std::bad_alloc&) {
    outcome->deferred.Reject(make_error(env, Status(Code::kOutOfMemory)).Value());
  }
}

}  // namespace cutout::binding
