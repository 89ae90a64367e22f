#pragma once

#include <onnxruntime_cxx_api.h>

#include <new>
#include <string>
#include <utility>

#include "core/status.h"

/// For native/ort only: declarations that use ONNX Runtime's types and exceptions.
namespace cutout::ort {

/// The process-wide environment; open_runtime() must have succeeded. Created on first use and never
/// destroyed, since sessions may outlive static objects.
Ort::Env& environment();

/// First line of ONNX Runtime's message; a stack trace follows.
inline std::string first_line(const char* text) {
  const std::string all(text);
  return all.substr(0, all.find('\n'));
}

/// Runs `body` and turns exceptions into a status: `code`, and `what` followed by ONNX Runtime's
/// message. Throws std::bad_alloc when there is no memory for the message.
template <typename Body>
Status guarded(Code code, const std::string& what, Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const std::bad_alloc&) {
    return {Code::kOutOfMemory, what + ": out of memory."};
  } catch (const std::exception& error) {
    const std::string reason = first_line(error.what());
    // ONNX Runtime has no error code for failed allocations.
    const bool memory = reason.find("Failed to allocate memory") != std::string::npos ||
                        reason.find("bad_alloc") != std::string::npos;
    return {memory ? Code::kOutOfMemory : code, what + ": " + reason};
  }
}

}  // namespace cutout::ort
