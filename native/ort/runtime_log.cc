#include "ort/runtime_log.h"

#include <cstring>
#include <mutex>
#include <utility>

namespace cutout::ort {

namespace {

std::mutex mutex;
std::vector<LogLine> lines;
std::size_t dropped = 0;
thread_local CapturedLog* captured = nullptr;

constexpr std::size_t kMaxCapturedBytes = std::size_t{1} << 20;

}  // namespace

std::vector<LogLine> take_log() {
  const std::lock_guard lock(mutex);
  std::vector<LogLine> taken = std::exchange(lines, {});
  const std::size_t lost = std::exchange(dropped, 0);
  if (lost > 0) taken.push_back({2, std::to_string(lost) + " more messages were dropped."});
  return taken;
}

void log_line(int level, const char* text) noexcept {
  try {
    std::string line(text, strnlen(text, kMaxLogLineBytes));
    if (captured != nullptr) {
      if (captured->text_.size() < kMaxCapturedBytes) captured->text_ += line + "\n";
      return;
    }
    const std::lock_guard lock(mutex);
    if (lines.size() < kMaxLogLines) {
      lines.push_back({level, std::move(line)});
    } else {
      ++dropped;
    }
  } catch (...) {  // no memory for a message
  }
}

CapturedLog::CapturedLog() { captured = this; }
CapturedLog::~CapturedLog() { captured = nullptr; }

}  // namespace cutout::ort
