#include "gpu_check/options.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <map>
#include <stdexcept>

namespace cutout::gpu_check {

const char* const kUsage =
    "cutout_gpu_check [options]: proves on a GPU that driver, libraries, kernels and network "
    "work.\n"
    "\n"
    "  --device N|host       number of the GPU, default 0; host: its part is played by the CPU\n"
    "  --kernels FILE        libcutout_cuda.so; without it the kernels are not checked on a GPU\n"
    "  --cases N             random cases of all kernels together, default 2000\n"
    "  --runtime FILE        libonnxruntime.so; without it the network is not checked\n"
    "  --library FILE        library of CUDA or TensorRT to open first; may be repeated\n"
    "  --provider NAME       cuda (default) or tensorrt\n"
    "  --engine-cache DIR    of TensorRT\n"
    "  --network FILE        prepared network for the device\n"
    "  --program FILE        the same for Cutout's own kernels, which then run instead\n"
    "  --reference FILE      the same network in float32, for the CPU (default: --network)\n"
    "  --width N, --height N of its input, default 1024\n"
    "  --logit               its output is a logit, not a probability\n"
    "  --fp16                it has values in float16\n"
    "  --batch N             largest batch, 1 to 64, default 8\n"
    "  --seconds S           of each measurement, default 5\n"
    "  --parts LIST          of kernels,network,engine,lost, default all; lost: a wrong access "
    "ends\n"
    "                        CUDA in this process, and the engine has to say so\n"
    "  --json FILE           where the report is written\n"
    "\n"
    "Ends with 0 when everything is right, 1 when something is not, 2 for a wrong command line,\n"
    "3 when there is no GPU that can be used.\n";

namespace {

int whole(const std::string& text, int low, int high) {
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || value < low || value > high) throw std::out_of_range(text);
  return static_cast<int>(value);
}

std::vector<std::string> parts(const std::string& list) {
  static constexpr std::array kParts = {"kernels", "network", "engine", "lost"};
  std::vector<std::string> named;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    named.push_back(list.substr(at, end - at));
    if (std::ranges::find(kParts, named.back()) == kParts.end()) throw std::out_of_range(list);
    at = end + 1;
  }
  return named;
}

}  // namespace

bool wants(const Options& options, const std::string& part) {
  return std::ranges::find(options.parts, part) != options.parts.end();
}

Status parse(int argc, char** argv, Options& options) {
  using Take = std::function<void(const std::string&)>;
  const auto text = [](std::string& to) { return [&to](const std::string& value) { to = value; }; };
  const auto number = [](int& to, int low, int high) {
    return [&to, low, high](const std::string& value) { to = whole(value, low, high); };
  };
  const std::map<std::string, Take> with_value{
      {"--device",
       [&](const std::string& value) {
         if (value == "host")
           options.device.reset();
         else
           options.device = whole(value, 0, 1023);
       }},
      {"--kernels", text(options.kernels)},
      {"--cases", number(options.cases, 1, 10'000'000)},
      {"--runtime", text(options.runtime)},
      {"--library", [&](const std::string& value) { options.libraries.push_back(value); }},
      {"--provider",
       [&](const std::string& value) {
         if (value != "cuda" && value != "tensorrt") throw std::out_of_range(value);
         options.provider = value == "cuda" ? ort::Provider::kCuda : ort::Provider::kTensorRt;
       }},
      {"--engine-cache", text(options.engine_cache)},
      {"--network", text(options.network)},
      {"--program", text(options.program)},
      {"--reference", text(options.reference)},
      {"--width", number(options.width, 1, 8192)},
      {"--height", number(options.height, 1, 8192)},
      {"--batch", number(options.largest_batch, 1, 64)},
      {"--seconds",
       [&](const std::string& value) {
         char* end = nullptr;
         options.seconds = std::strtod(value.c_str(), &end);
         if (value.empty() || *end != '\0' || !(options.seconds > 0 && options.seconds <= 600))
           throw std::out_of_range(value);
       }},
      {"--parts", [&](const std::string& value) { options.parts = parts(value); }},
      {"--json", text(options.json)},
  };
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--logit") {
      options.logit = true;
    } else if (name == "--fp16") {
      options.fp16 = true;
    } else if (const auto found = with_value.find(name); found == with_value.end()) {
      return {Code::kBadInput, "There is no option " + name + "."};
    } else if (++i == argc) {
      return {Code::kBadInput, name + " needs a value."};
    } else {
      try {
        found->second(argv[i]);
      } catch (const std::out_of_range&) {
        return {Code::kBadInput, name + " cannot be " + argv[i] + "."};
      }
    }
  }
  if (!options.network.empty() && options.runtime.empty())
    return {Code::kBadInput, "--network needs --runtime."};
  if (options.reference.empty()) options.reference = options.network;
  return {};
}

}  // namespace cutout::gpu_check
