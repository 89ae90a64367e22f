#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <stop_token>

#include "core/status.h"

namespace cutout {

using Clock = std::chrono::steady_clock;

inline double milliseconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

/// Cancellation and deadline of one job. Every function may be called from any thread.
class CancelToken {
 public:
  explicit CancelToken(std::optional<Clock::time_point> deadline = {}) : deadline_(deadline) {}

  /// Stops the job with kCancelled or kClosed; the first reason counts. Callbacks registered on
  /// stop_token() run in the calling thread before this returns.
  void stop(Code reason) {
    Code expected = Code::kOk;
    if (reason_.compare_exchange_strong(expected, reason)) source_.request_stop();
  }

  [[nodiscard]] const std::optional<Clock::time_point>& deadline() const { return deadline_; }

  [[nodiscard]] bool stopped() const { return reason_.load() != Code::kOk; }

  /// Ok, or why the job has to end: kCancelled, kClosed or kDeadline. Called between the steps of a
  /// job and, by its ThreadPool, before each range of a loop. Does not allocate.
  [[nodiscard]] Status check() const {
    switch (reason_.load()) {
      case Code::kOk:
        break;
      case Code::kClosed:
        return Status(Code::kClosed);
      default:
        return Status(Code::kCancelled);
    }
    if (deadline_ && Clock::now() >= *deadline_) {
      return Status(Code::kDeadline);
    }
    return {};
  }

  /// Returns a token for std::stop_callback, to interrupt a step that cannot call check(). A passed
  /// deadline does not trigger it.
  [[nodiscard]] std::stop_token stop_token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
  std::atomic<Code> reason_{Code::kOk};
  std::optional<Clock::time_point> deadline_;
};

}  // namespace cutout
