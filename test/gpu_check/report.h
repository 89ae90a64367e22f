#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cutout::gpu_check {

/// One thing that was looked at.
struct Finding {
  std::string part;
  bool ok = false;
  std::string said;  // a sentence
};

struct KernelResult {
  std::string name;
  int cases = 0;
  double largest = 0;  // difference from the CPU; infinite for values that are no numbers
  double limit = 0;
};

/// A size of batch on the device.
struct BatchResult {
  std::size_t size = 1;
  double ms = 0;
  double images_per_second = 0;
  std::size_t values = 0;
  std::size_t not_finite = 0;
  double mean_difference = 0;  // from the reference on the CPU, of probabilities
  double p999_difference = 0;
};

/// Images that arrive at random at a share of the best rate.
struct LoadResult {
  double share = 0;
  double offered_per_second = 0;
  double done_per_second = 0;
  double p50_ms = 0;
  double p99_ms = 0;
};

/// Images of one size through the engine.
struct EngineRound {
  int width = 0;
  int height = 0;
  int at_a_time = 1;
  std::size_t images = 0;
  double images_per_second = 0;
  double p50_ms = 0;
  double p99_ms = 0;
  // Of an image, on average.
  double queue_ms = 0;
  double prepare_ms = 0;
  double infer_ms = 0;
  double matte_ms = 0;
  // Of the alpha from the CPU's, in levels of 255.
  double mean_difference = 0;
  double p999_difference = 0;
};

struct EngineResult {
  double load_ms = 0;
  double first_ms = 0;  // of the first matte after that
  std::vector<EngineRound> rounds;
  std::uint64_t device_memory = 0;
};

struct Report {
  std::string device;
  std::vector<Finding> findings;
  std::vector<KernelResult> kernels;
  std::vector<BatchResult> batches;
  std::optional<LoadResult> load;
  std::optional<EngineResult> engine;
  std::uint64_t device_memory = 0;  // of the network in all sizes of batches; 0: not known
  double load_ms = 0;               // to open the network in its first size
  double warm_up_ms = 0;

  [[nodiscard]] bool ok() const;
  void say(std::string part, bool ok, std::string said);
};

/// For people, and for `npm run bench -- gpu` and `-- batching --table`.
std::string table(const Report& report);
std::string json(const Report& report);

}  // namespace cutout::gpu_check
