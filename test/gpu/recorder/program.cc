// cutout_recorded RUNTIME KERNELS NETWORK PROGRAM SIDE BATCH PART: the engine on a GPU that is the
// recorder (recorder.h). KERNELS: libcutout_cuda.so, or a path where there is none; PROGRAM: 1
// where the network is one for Cutout's kernels, else ONNX Runtime runs it. Writes JSON. `counts`:
// what opening the network and one round of BATCH images of 1 and 12 megapixels call. `faults`:
// what the engine says when a call of each kind fails while it opens the network or makes the first
// image after that, and to the next image.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gpu/recorder/recorder.h"
#include "ort/runtime_log.h"
#include "pipeline/engine.h"

using namespace cutout;
using namespace cutout::test;

namespace {

struct Arguments {
  std::string runtime;
  std::string kernels;
  std::string network;
  bool program;
  int side;
  int batch;
};

struct Size {
  int width;
  int height;
};

constexpr Size kSmall{1155, 866};
constexpr Size kLarge{4000, 3000};

/// Errors of CUDA: out of memory, a function that is refused, a launch that ended the context.
constexpr int kNoMemory = 2;
constexpr int kRefused = 98;
constexpr int kLaunchFailure = 719;

template <typename Result>
struct Answer {
  std::promise<std::pair<Status, Result>> promise;

  auto callback() {
    return [this](Status status, Result result) {
      promise.set_value({std::move(status), std::move(result)});
    };
  }
  Status wait() { return promise.get_future().get().first; }
};

Status open(const Arguments& with, std::unique_ptr<Engine>& engine) {
  EngineOptions options;
  options.runtime_path = with.runtime;
  options.provider = ort::Provider::kCuda;
  options.kernels_path = with.kernels;
  options.workers = with.batch;
  options.queue_limit = with.batch;
  options.device_memory = std::uint64_t{64} << 30;
  options.max_batch = with.batch;
  options.batch_delay_ms = with.batch > 1 ? 1000 : 0;  // until a batch is full
  CUTOUT_RETURN_IF_ERROR(Engine::create(options, engine));
  return {};
}

Status load(const Arguments& with, Engine& engine) {
  NetworkSpec spec;
  spec.name = "net";
  spec.path = with.network;
  spec.gpu_program = with.program;
  spec.input = {with.side, with.side, {128, 128, 128}, {256, 256, 256}};
  spec.output = NetworkOutput::kLogit;
  spec.trained_on = TrainedOn::kMasks;
  Answer<NetworkInfo> loaded;
  engine.load(spec, loaded.callback());
  return loaded.wait();
}

/// Makes images at the same time; the first error.
Status make_images(Engine& engine, const Size& size, int images) {
  static std::uint64_t next_id = 1;
  const std::size_t bytes = 4 * static_cast<std::size_t>(size.width * size.height);
  std::vector<std::vector<std::uint8_t>> pixels(static_cast<std::size_t>(images));
  std::vector<Answer<MatteResult>> answers(pixels.size());
  MattePlan plan;
  plan.width = size.width;
  plan.height = size.height;
  plan.roi = {0, 0, size.width, size.height};
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    pixels[i].assign(bytes, 255);
    pixels[i][0] = 0;  // no flat border, for which the output goes to the host (decision 0281)
    const ImageView view{pixels[i].data(), size.width, size.height,
                         static_cast<std::ptrdiff_t>(size.width) * 4};
    engine.matte(next_id++, {view, plan, "net", {}}, answers[i].callback());
  }
  Status first;
  for (auto& answer : answers) {
    Status status = answer.wait();
    if (first.ok()) first = std::move(status);
  }
  return first;
}

void write_text(const char* text) {
  std::putchar('"');
  for (; *text != 0; ++text) {
    if (*text == '"' || *text == '\\') std::putchar('\\');
    if (static_cast<unsigned char>(*text) >= ' ') std::putchar(*text);
  }
  std::putchar('"');
}

void write_counts(const Recorded& recorded) {
  std::printf("{\"pageable\":%zu,\"outside\":%zu,\"defaults\":%zu", recorded.pageable,
              recorded.outside, recorded.defaults);
  for (std::size_t i = 0; i < kCallKinds; ++i)
    std::printf(",\"%s\":%zu,\"%sBytes\":%zu", kCallNames[i], recorded.calls[i], kCallNames[i],
                recorded.bytes[i]);
  std::putchar('}');
}

std::uint64_t runs(Engine& engine) {
  std::uint64_t all = 0;
  for (const DeviceWork& work : engine.device_work())
    for (const std::uint64_t batches : work.batches) all += batches;
  return all;
}

Status count(const Arguments& with) {
  std::unique_ptr<Engine> engine;
  CUTOUT_RETURN_IF_ERROR(open(with, engine));
  (void)take_recorded();
  CUTOUT_RETURN_IF_ERROR(load(with, *engine));
  std::printf("{\"opened\":");
  write_counts(take_recorded());
  std::printf(",\"rounds\":[");
  for (const Size& size : {kSmall, kLarge}) {
    CUTOUT_RETURN_IF_ERROR(make_images(*engine, size, with.batch));  // allocates
    (void)take_recorded();
    const std::uint64_t before = runs(*engine);
    CUTOUT_RETURN_IF_ERROR(make_images(*engine, size, with.batch));
    std::printf("%s{\"width\":%d,\"height\":%d,\"runs\":%llu,\"counts\":",
                size.width == kSmall.width ? "" : ",", size.width, size.height,
                static_cast<unsigned long long>(runs(*engine) - before));
    write_counts(take_recorded());
    std::putchar('}');
  }
  std::printf("],\"log\":[");
  const char* between = "";
  for (const ort::LogLine& line : ort::take_log()) {
    std::fputs(between, stdout);
    write_text(line.text.c_str());
    between = ",";
  }
  std::printf("]}\n");
  engine->close(std::chrono::seconds(5));
  return {};
}

/// A new engine in which the n-th call of a kind fails.
class Fault {
 public:
  Fault(const Arguments& with, Call kind, bool opening, bool lost)
      : with_(with), kind_(kind), opening_(opening), lost_(lost) {}

  /// How many calls of the kind there are without a fault.
  Status count(std::size_t& calls) {
    std::unique_ptr<Engine> engine;
    CUTOUT_RETURN_IF_ERROR(open(with_, engine));
    (void)take_recorded();
    CUTOUT_RETURN_IF_ERROR(load(with_, *engine));
    if (!opening_) {
      (void)take_recorded();
      CUTOUT_RETURN_IF_ERROR(make_images(*engine, kSmall, 1));
    }
    calls = take_recorded().calls[static_cast<std::size_t>(kind_)];
    engine->close(std::chrono::seconds(5));
    return {};
  }

  Status run(std::size_t nth) {
    std::unique_ptr<Engine> engine;
    CUTOUT_RETURN_IF_ERROR(open(with_, engine));
    const bool memory = kind_ == Call::kAllocate || kind_ == Call::kAllocatePinned;
    const auto arm = [&] {
      fail_call(kind_, static_cast<int>(nth),
                lost_    ? kLaunchFailure
                : memory ? kNoMemory
                         : kRefused,
                lost_);
    };
    if (opening_) arm();
    Status first = load(with_, *engine);
    if (!opening_) {
      CUTOUT_RETURN_IF_ERROR(Status(first));
      arm();
      first = make_images(*engine, kSmall, 1);
    }
    const bool failed = call_has_failed();
    // A device that is lost stays so.
    if (!lost_) fail_call(kind_, 0, 0, false);
    Status next;
    if (opening_ && !first.ok() && !lost_) next = load(with_, *engine);
    if (next.ok() && !(opening_ && lost_)) next = make_images(*engine, kSmall, 1);
    fail_call(kind_, 0, 0, false);
    std::printf(
        "%s{\"call\":\"%s\",\"nth\":%zu,\"opening\":%s,\"lost\":%s,\"made\":%s,\"code\":%d,",
        between_, kCallNames[static_cast<std::size_t>(kind_)], nth, opening_ ? "true" : "false",
        lost_ ? "true" : "false", failed ? "true" : "false", static_cast<int>(first.code()));
    between_ = ",\n";
    std::printf("\"next\":%d,\"message\":", static_cast<int>(next.code()));
    write_text(first.message());
    std::printf(",\"nextMessage\":");
    write_text(next.message());
    std::putchar('}');
    engine->close(std::chrono::seconds(5));
    return {};
  }

 private:
  static inline const char* between_ = "";
  const Arguments& with_;
  const Call kind_;
  const bool opening_;
  const bool lost_;
};

/// The first, the middle and the last call of each kind.
Status fail_each(const Arguments& with) {
  std::putchar('[');
  for (std::size_t kind = 0; kind < kCallKinds; ++kind) {
    for (const bool opening : {true, false}) {
      for (const bool lost : {false, true}) {
        Fault fault(with, static_cast<Call>(kind), opening, lost);
        std::size_t calls = 0;
        CUTOUT_RETURN_IF_ERROR(fault.count(calls));
        for (const std::size_t nth : std::set<std::size_t>{1, (calls + 1) / 2, calls})
          if (calls > 0) CUTOUT_RETURN_IF_ERROR(fault.run(nth));
      }
    }
  }
  std::printf("]\n");
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 8) {
    std::fputs("cutout_recorded RUNTIME KERNELS NETWORK PROGRAM SIDE BATCH PART\n", stderr);
    return 2;
  }
  const Arguments with{
      argv[1],           argv[2], argv[3], std::string(argv[4]) == "1", std::atoi(argv[5]),
      std::atoi(argv[6])};
  const Status status =
      caught([&] { return std::string(argv[7]) == "faults" ? fail_each(with) : count(with); });
  for (const ort::LogLine& line : ort::take_log()) std::fprintf(stderr, "%s\n", line.text.c_str());
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message());
  return status.ok() ? 0 : 1;
}
