#include "completion.h"

#include "error.h"

namespace cutout::binding {

Completion::Completion(Napi::Env env)
    : channel_(Channel::New(env, "cutout", /*maxQueueSize=*/0, /*initialThreadCount=*/1, this)) {
  channel_.Unref(env);
}

Completion::Pending Completion::begin(Napi::Env env, const std::vector<Napi::Object>& keep,
                                      std::function<void()> settled) {
  Waiting waiting{Napi::Promise::Deferred::New(env), {}, std::move(settled)};
  for (const Napi::Object& object : keep) waiting.keep.push_back(Napi::Persistent(object));
  const Pending pending{waiting.deferred.Promise(), next_++};
  if (waiting_.empty()) channel_.Ref(env);
  waiting_.emplace(pending.number, std::move(waiting));
  return pending;
}

void Completion::post(std::uint64_t number, Status status, Value value) {
  auto message = std::make_unique<Message>(Message{number, std::move(status), std::move(value)});
  // Refused only while the environment goes down; nobody waits for the result then.
  if (channel_.NonBlockingCall(message.get()) == napi_ok) static_cast<void>(message.release());
}

void Completion::shut_down() {
  channel_.Release();
  waiting_.clear();
}

void Completion::call_js(Napi::Env env, Napi::Function, Completion* self, Message* message) {
  const std::unique_ptr<Message> owned(message);
  // Without an environment there is nobody to tell: the queue is only being emptied.
  if (static_cast<napi_env>(env) == nullptr) return;
  try {
    self->settle(env, *owned);
  } catch (const Napi::Error&) {
    // A terminating environment refuses JavaScript; an exception from here would abort the process.
  }
}

void Completion::settle(Napi::Env env, const Message& message) {
  const auto found = waiting_.find(message.number);
  if (found == waiting_.end()) return;
  const Waiting waiting = std::move(found->second);
  waiting_.erase(found);
  if (waiting_.empty()) channel_.Unref(env);
  waiting.settled();
  if (!message.status.ok()) {
    waiting.deferred.Reject(make_error(env, message.status).Value());
    return;
  }
  try {
    waiting.deferred.Resolve(message.value(env));
  } catch (const Napi::Error& error) {
    waiting.deferred.Reject(error.Value());
  }
}

}  // namespace cutout::binding
