#pragma once

#include <exception>
#include <new>
#include <string>
#include <utility>

namespace cutout {

/// Stable codes; binding/ turns each into the `code` of a JavaScript error (src/engine/types.ts).
enum class Code {
  kOk,
  kBadInput,
  kQueueFull,
  kCancelled,
  kClosed,
  kModel,
  kRuntime,
  kProvider,      // a library of a GPU provider is missing or does not fit
  kDriver,        // the driver of the GPU is missing, too old or unusable
  kDevice,        // no such GPU, one that is too old, or one that has stopped working
  kDeviceMemory,  // the GPU has not enough free memory
  kOutOfMemory,
  kInternal,
};

/// Outcome of a native step. Failed allocations and other unforeseen errors are thrown instead and
/// become a status where the job ends (caught() below): no exception leaves a thread or reaches a C
/// interface.
class [[nodiscard]] Status {
 public:
  Status() = default;
  /// With the code's default message. Does not allocate.
  explicit Status(Code code) noexcept : code_(code) {}
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  [[nodiscard]] bool ok() const { return code_ == Code::kOk; }
  [[nodiscard]] Code code() const { return code_; }
  /// A sentence, valid as long as the status. Does not allocate.
  [[nodiscard]] const char* message() const {
    return message_.empty() ? default_message(code_) : message_.c_str();
  }

 private:
  static const char* default_message(Code code) {
    switch (code) {
      case Code::kCancelled:
        return "The job was cancelled.";
      case Code::kClosed:
        return "The engine was closed before the job was finished.";
      case Code::kOutOfMemory:
        return "There was not enough memory for the job.";
      case Code::kInternal:
        return "The job failed for an unknown reason.";
      default:
        return "";
    }
  }

  Code code_ = Code::kOk;
  std::string message_;
};

/// Thrown where a job ends in the middle of a step that returns no Status. Does not allocate.
class Stopped final : public std::exception {
 public:
  explicit Stopped(Code reason) noexcept : reason_(reason) {}
  [[nodiscard]] Code reason() const noexcept { return reason_; }
  [[nodiscard]] const char* what() const noexcept override { return "The job was stopped."; }

 private:
  Code reason_;
};

/// Runs `body`, which returns a Status, and turns exceptions into one: the reason of Stopped,
/// kOutOfMemory for a failed allocation, else kInternal.
template <typename Body>
Status caught(Body&& body) noexcept {
  try {
    return std::forward<Body>(body)();
  } catch (const Stopped& stopped) {
    return Status(stopped.reason());
  } catch (const std::bad_alloc&) {
    return Status(Code::kOutOfMemory);
  } catch (const std::exception& error) {
    try {
      return {Code::kInternal, error.what()};
    } catch (...) {
      return Status(Code::kOutOfMemory);
    }
  } catch (...) {
    return Status(Code::kInternal);
  }
}

}  // namespace cutout

#define CUTOUT_RETURN_IF_ERROR(expression)                        \
  do {                                                            \
    if (::cutout::Status status_ = (expression); !status_.ok()) { \
      return status_;                                             \
    }                                                             \
  } while (false)
