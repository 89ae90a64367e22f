#pragma once

#include <string>

#include "core/status.h"

namespace cutout::ort {

/// What ONNX Runtime's message says about a GPU: a code and a sentence with a remedy that begins
/// with `what` and ends with the message; `otherwise` and the message where it is none of the known
/// ones.
///
/// | message                                   | code          |
/// |-------------------------------------------|---------------|
/// | a library cannot be opened                | kProvider     |
/// | no driver, or one that is too old         | kDriver       |
/// | no GPU, another architecture, lost device | kDevice       |
/// | out of device memory                      | kDeviceMemory |
/// | nodes that only the CPU can run           | kProvider     |
Status gpu_failure(const std::string& what, const std::string& message, Code otherwise);

/// What ONNX Runtime's message says about the CPU: kOutOfMemory when memory was refused, kRuntime
/// with a remedy when threads were, else `otherwise`. Every message begins with `what`.
Status cpu_failure(const std::string& what, const std::string& message, Code otherwise);

/// Names of nodes that ONNX Runtime placed on the CPU, from the lines it logs about their
/// placement: at most `limit`, separated by commas; empty without any.
std::string nodes_on_cpu(const std::string& log, int limit = 5);

}  // namespace cutout::ort
