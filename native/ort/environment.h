#pragma once

#include <onnxruntime_cxx_api.h>

#include <new>
#include <string>
#include <utility>

#include "core/status.h"
#include "ort/failure.h"

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

/// Runs `body` and turns exceptions into a status, by cpu_failure(). Throws std::bad_alloc when
/// there is no memory for the message.
template <typename Body>
Status guarded(Code code, const std::string& what, Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const std::bad_alloc&) {
    return {Code::kOutOfMemory, what + ": out of memory."};
  } catch (const std::exception& error) {
    return cpu_failure(what, first_line(error.what()), code);
  }
}

}  // namespace cutout::ort
