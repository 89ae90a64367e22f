#pragma once

#include <napi.h>

#include <functional>
#include <memory>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/status.h"
#include "results.h"

namespace cutout::binding {

/// Passes results from engine threads to the JavaScript thread; the only place that does. One for
/// each environment.
///
/// Holds what a job needs of JavaScript (its promise, objects that must stay alive), on the
/// JavaScript thread, and the memory for its outcome, so that reporting it does not allocate.
class Completion {
 public:
  explicit Completion(Napi::Env env);  // JS thread only
  ~Completion() = default;             // JS thread only, after shut_down()
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  template <typename Result>
  struct Pending {
    Napi::Promise promise;
    /// Settles the promise: rejects it unless the status is ok. Any thread, once. Neither calling
    /// nor copying it throws or allocates.
    std::function<void(Status, Result)> done;
  };

  /// A new promise and the function that settles it. `pinned` stays alive until then; `on_settle`
  /// is called just before the promise settles; it resolves with to_js() of the result. The process
  /// stays alive while a promise is pending. JS thread only.
  template <typename Result>
  Pending<Result> begin(Napi::Env env, const std::vector<Napi::Object>& pinned,
                        std::function<void()> on_settle) {
    static_assert(std::is_nothrow_move_assignable_v<Result>);
    auto outcome = std::make_unique<OutcomeOf<Result>>(env, std::move(on_settle));
    OutcomeOf<Result>* const slot = outcome.get();
    const Napi::Promise promise = enter(env, pinned, std::move(outcome));
    return {promise, [this, slot](Status status, Result result) {
              slot->status = std::move(status);
              slot->result = std::move(result);
              post(*slot);
            }};
  }

  /// Drops everything pending; the promises never settle, because no JavaScript runs any more. No
  /// `done` may be called afterwards. JS thread only, from the environment's clean-up hook.
  void shut_down();

 private:
  /// A job's promise and outcome; owned by pending_.
  struct Outcome {
    Outcome(Napi::Env env, std::function<void()> settling)
        : deferred(Napi::Promise::Deferred::New(env)), on_settle(std::move(settling)) {}
    virtual ~Outcome() = default;
    virtual Napi::Value make(Napi::Env env) = 0;
    Napi::Promise::Deferred deferred;
    std::vector<Napi::ObjectReference> pinned;
    std::function<void()> on_settle;
    Status status;
  };
  template <typename Result>
  struct OutcomeOf final : Outcome {
    using Outcome::Outcome;
    Napi::Value make(Napi::Env env) override { return to_js(env, result); }
    Result result{};
  };
  static void call_js(Napi::Env env, Napi::Function, Completion* self, Outcome* outcome);
  using Channel = Napi::TypedThreadSafeFunction<Completion, Outcome, &Completion::call_js>;

  Napi::Promise enter(Napi::Env env, const std::vector<Napi::Object>& pinned,
                      std::unique_ptr<Outcome> outcome);
  void post(Outcome& outcome);
  void settle(Napi::Env env, Outcome* settled);

  Channel channel_;
  std::unordered_map<Outcome*, std::unique_ptr<Outcome>> pending_;
};

}  // namespace cutout::binding
