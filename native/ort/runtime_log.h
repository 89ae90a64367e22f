#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace cutout::ort {

inline constexpr int kWarning = 2;

/// A message of ONNX Runtime. `level`: 0 verbose, 1 information, 2 warning, 3 error, 4 fatal.
struct LogLine {
  int level = 0;
  std::string text;
};

/// Lines since the last call, the oldest first. Lines beyond kMaxLogLines are dropped, and counted
/// in a last line. May be called from any thread.
std::vector<LogLine> take_log();

inline constexpr std::size_t kMaxLogLines = 256;
inline constexpr std::size_t kMaxLogLineBytes = 1000;

/// Adds a message, cut to kMaxLogLineBytes; drops it without memory for it.
void log_line(int level, const char* text) noexcept;

/// Sends the lines of the thread's ONNX Runtime calls here while it exists, instead of to
/// take_log(). Not nested.
class CapturedLog {
 public:
  CapturedLog();
  ~CapturedLog();
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;

  /// The lines so far.
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  friend void log_line(int level, const char* text) noexcept;
  std::string text_;
};

}  // namespace cutout::ort
