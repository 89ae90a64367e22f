#pragma once

#include <napi.h>

#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "completion.h"
#include "pipeline/engine.h"

namespace cutout::binding {

/// Owns the native engine of one Engine object and the threads that close it.
class EngineOwner {
 public:
  explicit EngineOwner(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}
  ~EngineOwner() { shut_down(); }  // JS thread only
  EngineOwner(const EngineOwner&) = delete;
  EngineOwner& operator=(const EngineOwner&) = delete;

  [[nodiscard]] Engine& engine() { return *engine_; }

  /// Closes the engine on a thread of its own, since that blocks; calls `done` on it. When the
  /// thread cannot be started, closes without grace in the caller. JS thread only.
  void close(std::chrono::milliseconds grace, const std::function<void()>& done) {
    engine_->stop_admission();
    try {
      closers_.emplace_back([this, grace, done] {
        engine_->close(grace);
        done();
      });
    } catch (const std::exception&) {
      engine_->close(std::chrono::milliseconds(0));
      done();
    }
  }

  /// Stops all jobs and joins all threads. JS thread only.
  void shut_down() {
    engine_->close(std::chrono::milliseconds(0));
    closers_.clear();  // joins them
  }

 private:
  std::unique_ptr<Engine> engine_;
  std::vector<std::jthread> closers_;
};

/// State of one environment: the main thread's or a worker thread's.
class Instance {
 public:
  explicit Instance(Napi::Env env) : completion_(env) {
    // Hooks run in reverse order: this one before that of the thread-safe function created above.
    env.AddCleanupHook([](Instance* self) { self->shut_down(); }, this);
  }
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  [[nodiscard]] Completion& completion() { return completion_; }
  void add(const std::shared_ptr<EngineOwner>& owner) {
    std::erase_if(owners_, [](const std::weak_ptr<EngineOwner>& entry) { return entry.expired(); });
    owners_.push_back(owner);
  }

 private:
  /// Runs when the environment is torn down, before its thread-safe function is: no engine thread
  /// is left that could call it.
  void shut_down() {
    for (const std::weak_ptr<EngineOwner>& entry : owners_) {
      if (const std::shared_ptr<EngineOwner> owner = entry.lock()) owner->shut_down();
    }
    completion_.shut_down();
  }

  Completion completion_;
  std::vector<std::weak_ptr<EngineOwner>> owners_;
};

}  // namespace cutout::binding
