#include "stress/cuda/kernels.h"

#include <algorithm>
#include <array>
#include <string>

#include "cuda/library.h"
#include "gpu_check/checks.h"
#include "stress/cuda/host_table.h"

namespace cutout::gpu_check {

namespace {

constexpr int kAllShares = 100;

/// The kernels of the device, or those of the host in its place.
Status open_table(const Options& options, const cuda::Table*& table) {
  static const cuda::Table host = test::host_table(test::Order::kForwards);
  if (!options.device) {
    table = &host;
    return {};
  }
  CUTOUT_RETURN_IF_ERROR(cuda::open_library(options.kernels.c_str(), table));
  int devices = 0;
  const int error = table->device_count(&devices);
  if (error != 0) return {Code::kDevice, table->error_text(error)};
  if (devices == 0) return {Code::kDevice, "The library with the kernels finds no GPU."};
  return {};
}

}  // namespace

void check_kernels(const Options& options, Report& report) {
  if (options.device && options.kernels.empty()) {
    report.say("kernels", false, "They were not checked: --kernels names libcutout_cuda.so.");
    return;
  }
  const cuda::Table* table = nullptr;
  if (const Status opened = open_table(options, table); !opened.ok()) {
    report.say("kernels", false, opened.message());
    return;
  }
  test::Cases inputs;
  const std::array tables{table};
  std::size_t wrong = 0;
  for (const auto checks : {test::image_checks(), test::subject_checks(), test::sample_checks(),
                            test::matte_checks()}) {
    for (const test::Check& check : checks) {
      const int cases = std::max(1, options.cases * check.share / kAllShares);
      KernelResult result{check.name, cases, 0,
                          options.device ? check.limit_on_device : check.limit_on_host};
      for (int i = 0; i < cases; ++i) {
        std::array<double, 1> found{};
        check.run(inputs, tables, found);
        result.largest = std::max(result.largest, found.front());
      }
      wrong += result.largest <= result.limit ? 0 : 1;
      report.kernels.push_back(std::move(result));
    }
  }
  const std::string all = std::to_string(report.kernels.size());
  report.say("kernels", wrong == 0,
             wrong == 0 ? "All " + all + " give what the CPU gives, within their limits."
                        : std::to_string(wrong) + " of " + all +
                              " differ from the CPU by more than their limit.");
}

}  // namespace cutout::gpu_check
