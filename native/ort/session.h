#pragma once

#include <onnxruntime_cxx_api.h>
#include <onnxruntime_session_options_config_keys.h>

#include <filesystem>
#include <new>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>

#include "core/cancel.h"
#include "core/cpu.h"
#include "ort/custom_operators.h"
#include "ort/failure.h"

/// These declarations use ONNX Runtime's types and exceptions; only native/ort includes them.
namespace cutout::ort {

/// The process-wide environment; open_runtime() must have succeeded. Created on first use and never
/// destroyed, since sessions may outlive static objects.
Ort::Env& environment();

/// First line of ONNX Runtime's message; a stack trace follows.
inline std::string first_line(const char* text) {
  const std::string all(text);
  return all.substr(0, all.find('\n'));
}

/// Runs `body`, which returns a status, and turns exceptions into one, by gpu_failure() where it
/// works on a GPU, else by cpu_failure(). Throws std::bad_alloc when there is no memory for the
/// message.
template <typename Body>
Status guarded(bool gpu, Code code, const std::string& what, Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const std::bad_alloc&) {
    return {Code::kOutOfMemory, what + ": out of memory."};
  } catch (const std::exception& error) {
    const std::string line = first_line(error.what());
    return gpu ? gpu_failure(what, line, code) : cpu_failure(what, line, code);
  }
}

/// Runs a network likewise. The token's reason comes first: a run that was ended early reports a
/// failure.
template <typename Body>
Status guarded_run(bool gpu, Code code, const CancelToken& token, Body&& body) {
  const Status status = guarded(gpu, code, "The network's run failed", std::forward<Body>(body));
  CUTOUT_RETURN_IF_ERROR(token.check());
  return status;
}

/// kModel where there is no such file of a network.
inline Status check_file(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) return {};
  return {Code::kModel, "The network file '" + path + "' does not exist."};
}

/// Options of every session on the CPU.
inline Ort::SessionOptions session_options(int intra_op_threads) {
  Ort::SessionOptions options;
  options.SetIntraOpNumThreads(intra_op_threads);
  options.SetInterOpNumThreads(1);
  options.SetExecutionMode(ORT_SEQUENTIAL);
  options.SetGraphOptimizationLevel(ORT_ENABLE_ALL);
  options.SetLogSeverityLevel(ORT_LOGGING_LEVEL_FATAL);
  options.AddConfigEntry(kOrtSessionOptionsConfigUseEnvAllocators, "1");  // LargeMemory
  // Its plan of one block for all maps takes up to 1.4 times what is in use at a time.
  options.DisableMemPattern();
  // Idle threads must sleep: Node, libvips and the pixel pool share the cores.
  options.AddConfigEntry(kOrtSessionOptionsConfigAllowIntraOpSpinning, "0");
  options.AddConfigEntry(kOrtSessionOptionsConfigAllowInterOpSpinning, "0");
  // On x86 without dot products of bytes, sums of two products saturate at 16 bits otherwise. With
  // them nothing saturates, and the option would make ONNX Runtime go without them.
  if (!has_dot_products()) options.AddConfigEntry(kOrtSessionOptionsAvx2PrecisionMode, "1");
  return options;
}

/// Options of one run, which ends early when the token is stopped.
struct Interruptible {
  explicit Interruptible(const CancelToken& token)
      : terminate(token.stop_token(), Terminate{&options}), of_run(token) {}

  struct Terminate {
    Ort::RunOptions* options;
    void operator()() const {
      // Fails only when ONNX Runtime is out of memory; the run then completes.
      OrtStatus* const status = Ort::GetApi().RunOptionsSetTerminate(*options);
      if (status != nullptr) Ort::GetApi().ReleaseStatus(status);
    }
  };
  // SetTerminate ends every run that shares the object, so each run has its own.
  Ort::RunOptions options;
  std::stop_callback<Terminate> terminate;
  RunToken of_run;
};

}  // namespace cutout::ort
