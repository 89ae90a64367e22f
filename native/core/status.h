#pragma once

#include <string>
#include <utility>

namespace cutout {

/// Stable codes; binding/ turns each into the `code` of a JavaScript error (src/engine/types.ts).
enum class Code {
  kOk,
  kBadInput,
  kQueueFull,
  kCancelled,
  kDeadline,
  kClosed,
  kModel,
  kRuntime,
  kOutOfMemory,
  kInternal,
};

/// Outcome of a native step. Exceptions stay inside native/ort; everything else returns one of
/// these.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  [[nodiscard]] bool ok() const { return code_ == Code::kOk; }
  [[nodiscard]] Code code() const { return code_; }
  [[nodiscard]] const std::string& message() const { return message_; }

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

}  // namespace cutout

#define CUTOUT_RETURN_IF_ERROR(expression)                        \
  do {                                                            \
    if (::cutout::Status status_ = (expression); !status_.ok()) { \
      return status_;                                             \
    }                                                             \
  } while (false)
