#pragma once

#include <atomic>
#include <chrono>
#include <stop_token>

#include "core/status.h"

namespace cutout {

using Clock = std::chrono::steady_clock;

inline double milliseconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

/// Cancellation of one job. Every function may be called from any thread.
class CancelToken {
 public:
  /// Stops the job with kCancelled or kClosed; the first reason counts. Callbacks registered on
  /// stop_token() run in the calling thread before this returns.
  void stop(Code reason) {
    Code expected = Code::kOk;
    if (reason_.compare_exchange_strong(expected, reason)) source_.request_stop();
  }

  [[nodiscard]] bool stopped() const { return reason_.load() != Code::kOk; }

  /// Ok, or why the job has to end. Called between the steps of a job and, by its ThreadPool,
  /// before each range of a loop. Does not allocate.
  [[nodiscard]] Status check() const { return Status(reason_.load()); }

  /// Returns a token for std::stop_callback, to interrupt a step that cannot call check().
  [[nodiscard]] std::stop_token stop_token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
  std::atomic<Code> reason_{Code::kOk};
};

}  // namespace cutout
