#pragma once

#include <napi.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/status.h"

namespace cutout::binding {

/// The one place where results cross from engine threads to the JavaScript thread. One an
/// environment.
///
/// Everything of JavaScript that a job needs (its promise, what must stay alive) waits here, on the
/// JavaScript thread; a job knows only its number. While anything waits, the process stays alive.
class Completion {
 public:
  /// Makes the value a promise resolves with. Runs on the JS thread.
  using Value = std::function<Napi::Value(Napi::Env)>;

  explicit Completion(Napi::Env env);  // JS thread only
  ~Completion() = default;             // JS thread only, after shut_down()
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  struct Pending {
    Napi::Promise promise;
    std::uint64_t number;
  };

  /// A new promise and the number to settle it by. `keep` stays alive until then; `settled` is
  /// called just before the promise settles. JS thread only.
  Pending begin(Napi::Env env, const std::vector<Napi::Object>& keep,
                std::function<void()> settled);

  /// Settles a promise: rejects it unless `status` is ok. Any thread, once a number.
  void post(std::uint64_t number, Status status, Value value);

  /// Lets go of everything that still waits; its promises never settle, because no JavaScript runs
  /// any more. Nobody may post afterwards. JS thread only, from the environment's clean-up hook.
  void shut_down();

 private:
  struct Waiting {
    Napi::Promise::Deferred deferred;
    std::vector<Napi::ObjectReference> keep;
    std::function<void()> settled;
  };
  struct Message {
    std::uint64_t number;
    Status status;
    Value value;
  };
  static void call_js(Napi::Env env, Napi::Function, Completion* self, Message* message);
  using Channel = Napi::TypedThreadSafeFunction<Completion, Message, &Completion::call_js>;

  void settle(Napi::Env env, const Message& message);

  Channel channel_;
  std::unordered_map<std::uint64_t, Waiting> waiting_;
  std::uint64_t next_ = 1;
};

}  // namespace cutout::binding
