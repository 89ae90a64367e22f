// cutout_gpu_check: see kUsage in options.cc, and docs/gpu.md. Plain C++, because machines with a
// GPU may have no Node.js.
#include <array>
#include <cstdio>
#include <utility>

#include "gpu_check/checks.h"

using namespace cutout;

namespace {

constexpr int kWrong = 1;
constexpr int kUsageError = 2;
constexpr int kNoDevice = 3;

bool write(const std::string& file, const std::string& text) {
  std::FILE* const to = std::fopen(file.c_str(), "w");
  if (to == nullptr) return false;
  const bool written = std::fwrite(text.data(), 1, text.size(), to) == text.size();
  return std::fclose(to) == 0 && written;
}

int run(int argc, char** argv) {
  gpu_check::Options options;
  if (const Status parsed = gpu_check::parse(argc, argv, options); !parsed.ok()) {
    std::fprintf(stderr, "cutout_gpu_check: %s\n\n%s", parsed.message(), gpu_check::kUsage);
    return kUsageError;
  }
  gpu_check::Report report;
  if (const Status opened = gpu_check::open_machine(options, report); !opened.ok()) {
    std::fprintf(stderr, "cutout_gpu_check: %s\n", opened.message());
    return options.device ? kNoDevice : kWrong;
  }
  using Check = void (*)(const gpu_check::Options&, gpu_check::Report&);
  static constexpr std::array<std::pair<const char*, Check>, 4> kParts{{
      {"kernels", gpu_check::check_kernels},
      {"network", gpu_check::check_network},
      {"engine", gpu_check::check_engine},
      {"lost", gpu_check::check_lost_device},
  }};
  bool written = true;
  for (const auto& [part, check] : kParts) {
    if (!gpu_check::wants(options, part)) continue;
    const Status status = caught([&, check = check]() -> Status {
      check(options, report);
      return {};
    });
    if (!status.ok()) report.say(part, false, status.message());
    // After each part, since the next one may end the program.
    written = options.json.empty() || write(options.json, gpu_check::json(report));
  }
  std::fputs(gpu_check::table(report).c_str(), stdout);
  if (!written) {
    std::fprintf(stderr, "cutout_gpu_check: %s cannot be written.\n", options.json.c_str());
    return kWrong;
  }
  return report.ok() ? 0 : kWrong;
}

}  // namespace

int main(int argc, char** argv) {
  int code = kWrong;
  const Status status = caught([&]() -> Status {
    code = run(argc, argv);
    return {};
  });
  if (!status.ok()) std::fprintf(stderr, "cutout_gpu_check: %s\n", status.message());
  return code;
}
