// cuda_stress [cases [libcutout_cuda.so]]: random cases through the kernels of native/cuda, against
// the CPU. Without a library they run under the host executor, in three orders of blocks and
// threads; with one they run on the GPU too, if there is one. Built for the sanitizers
// (CMakeLists.txt).
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "cuda/library.h"
#include "stress/cuda/host_table.h"
#include "stress/cuda/kernels.h"

using namespace cutout;

namespace {

constexpr int kAllShares = 100;
constexpr const char* kOrders[] = {"forwards", "backwards", "shuffled"};

/// The library's kernels if it opens and there is a device.
const cuda::Table* device_table(const char* file) {
  const cuda::Table* table = nullptr;
  const Status opened = cuda::open_library(file, table);
  if (!opened.ok()) {
    std::fprintf(stderr, "%s\n", opened.message());
    std::exit(1);
  }
  int devices = 0;
  const int error = table->device_count(&devices);
  if (error == 0 && devices > 0) {
    std::printf("library opened, runs on the device\n");
    return table;
  }
  std::printf("library opened, not run on a GPU: %s\n",
              error == 0 ? "there is none" : table->error_text(error));
  return nullptr;
}

/// Whether every case of a kernel is within its limits.
bool run(const test::Check& check, int cases, std::span<const cuda::Table* const> tables,
         bool with_device) {
  test::Cases inputs;
  std::vector<double> most(tables.size(), 0.0);
  std::vector<double> found(tables.size(), 0.0);
  for (int i = 0; i < cases; ++i) {
    check.run(inputs, tables, found);
    for (std::size_t k = 0; k < tables.size(); ++k) most[k] = std::max(most[k], found[k]);
  }
  bool good = true;
  for (std::size_t k = 0; k < tables.size(); ++k) {
    const bool device = with_device && k + 1 == tables.size();
    const double limit = device ? check.limit_on_device : check.limit_on_host;
    good = good && most[k] <= limit;
    std::printf("%s %s %d %g %g\n", check.name, device ? "device" : kOrders[k], cases, most[k],
                limit);
  }
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  const int cases = argc > 1 ? std::atoi(argv[1]) : 1000;
  const cuda::Table forwards = test::host_table(test::Order::kForwards);
  const cuda::Table backwards = test::host_table(test::Order::kBackwards);
  const cuda::Table shuffled = test::host_table(test::Order::kShuffled);
  std::vector<const cuda::Table*> tables{&forwards, &backwards, &shuffled};
  const cuda::Table* const device = argc > 2 ? device_table(argv[2]) : nullptr;
  if (device != nullptr) tables.push_back(device);
  std::printf("kernel executor cases largest limit\n");
  bool good = true;
  for (const auto checks : {test::image_checks(), test::subject_checks(), test::sample_checks(),
                            test::matte_checks()}) {
    for (const test::Check& check : checks) {
      good = run(check, std::max(1, cases * check.share / kAllShares), tables, device != nullptr) &&
             good;
    }
  }
  const int labels = test::wrong_labels(cases / 5 + 1);
  std::printf("%d labels of components are wrong\n", labels);
  return good && labels == 0 ? 0 : 1;
}
