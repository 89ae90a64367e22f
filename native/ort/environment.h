#pragma once

#include <onnxruntime_cxx_api.h>

#include <new>
#include <string>
#include <utility>

#include "core/status.h"

/// For native/ort only: what shares ONNX Runtime's types and exceptions among its files.
namespace cutout::ort {

/// The process-wide environment; open_runtime() must have succeeded. Made on first use and never
/// destroyed: sessions and finalizers may outlive any order of destruction we could choose.
Ort::Env& environment();

/// First line of ONNX Runtime's text: what follows is a stack trace of its build machine.
inline std::string first_line(const char* text) {
  const std::string all(text);
  return all.substr(0, all.find('\n'));
}

/// Runs `body`, which may throw, and turns what it throws into a status: `code` and `what` in front
/// of ONNX Runtime's own words. Without memory for these it throws, as all of native/ may.
template <typename Body>
Status guarded(Code code, const std::string& what, Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const std::bad_alloc&) {
    return {Code::kOutOfMemory, what + ": out of memory."};
  } catch (const std::exception& error) {
    const std::string reason = first_line(error.what());
    // ONNX Runtime has no error code of its own for it.
    const bool memory = reason.find("Failed to allocate memory") != std::string::npos ||
                        reason.find("bad_alloc") != std::string::npos;
    return {memory ? Code::kOutOfMemory : code, what + ": " + reason};
  }
}

}  // namespace cutout::ort
