#include "completion.h"

#include <exception>
#include <new>

#include "error.h"

namespace cutout::binding {

Completion::Completion(Napi::Env env)
    : channel_(Channel::New(env, "cutout", /*maxQueueSize=*/0, /*initialThreadCount=*/1, this)) {
  channel_.Unref(env);
}

Napi::Promise Completion::enter(Napi::Env env, const std::vector<Napi::Object>& pinned,
                                std::function<void()> settled, std::unique_ptr<Outcome> outcome) {
  Waiting waiting{Napi::Promise::Deferred::New(env), {}, std::move(settled), std::move(outcome)};
  for (const Napi::Object& object : pinned) waiting.pinned.push_back(Napi::Persistent(object));
  const Napi::Promise promise = waiting.deferred.Promise();
  const std::uint64_t number = next_++;
  waiting.outcome->number = number;
  waiting_.emplace(number, std::move(waiting));
  if (waiting_.size() == 1) channel_.Ref(env);
  return promise;
}

void Completion::post(Outcome& outcome) {
  // Fails only while the environment is torn down; the promise never settles then.
  static_cast<void>(channel_.NonBlockingCall(&outcome));
}

void Completion::shut_down() {
  channel_.Release();
  waiting_.clear();
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
  const auto found = waiting_.find(number);
  if (found == waiting_.end()) return;
  const Waiting waiting = std::move(found->second);
  waiting_.erase(found);
  if (waiting_.empty()) channel_.Unref(env);
  waiting.settled();
  Outcome& outcome = *waiting.outcome;
  if (!outcome.status.ok()) {
    waiting.deferred.Reject(make_error(env, outcome.status).Value());
    return;
  }
  try {
    waiting.deferred.Resolve(outcome.make(env));
  } catch (const Napi::Error& error) {
    waiting.deferred.Reject(error.Value());
  } catch (const std::bad_alloc&) {
    waiting.deferred.Reject(make_error(env, Status(Code::kOutOfMemory)).Value());
  }
}

}  // namespace cutout::binding
