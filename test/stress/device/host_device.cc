#include "stress/device/host_device.h"

#include <array>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "stress/cuda/host_table.h"
#include "stress/device/host_network.h"

namespace cutout::test {

namespace {

using cuda::Table;

constexpr int kNoMemory = 2;  // cudaErrorMemoryAllocation
constexpr int kNoDevice = 101;
constexpr int kOtherDevice = 400;  // cudaErrorInvalidResourceHandle
constexpr int kIllegalAddress = 700;
constexpr int kLaunchFailure = 719;

const Table& executor() {
  static const Table table = [] {
    Table made = test::host_table(test::Order::kForwards);
    made.network = host_network();
    return made;
  }();
  return table;
}

/// Memory of a device, or of the host for it.
struct Block {
  std::size_t bytes = 0;
  int device = 0;
};

/// Guarded by its mutex, which is not held while work is done.
struct State {
  std::mutex mutex;
  std::map<const std::byte*, Block> blocks;
  std::array<std::size_t, kHostDevices> work{};
  Fault fault = Fault::kNothing;
  int device = kAnyDevice;
  int at = 0;
  int calls = 0;
  HostCopies copies;
  std::size_t held = 0;
  std::size_t queued = 0;
};

State& state() {
  static State instance;
  return instance;
}

/// Of the calling thread.
thread_local int current_device = 0;

enum class Kind { kOther, kMemory, kPinned };

/// The error of this call; 0: it succeeds.
int error_of(Kind kind = Kind::kOther) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const bool chosen = s.fault == Fault::kMemory   ? kind == Kind::kMemory
                      : s.fault == Fault::kPinned ? kind == Kind::kPinned
                                                  : true;
  if (!chosen || (s.device != kAnyDevice && s.device != current_device)) return 0;
  const int call = ++s.calls;
  switch (s.fault) {
    case Fault::kMemory:
    case Fault::kPinned:
      return call >= s.at ? kNoMemory : 0;
    case Fault::kOnce:
      return call == s.at ? kIllegalAddress : 0;
    case Fault::kLost:
      return call >= s.at ? kLaunchFailure : 0;
    default:
      return 0;
  }
}

void hold(int change) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.held += static_cast<std::size_t>(change);
}

void count_queued(std::ptrdiff_t change) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.queued += static_cast<std::size_t>(change);
}

/// Used by one thread at a time, as a call of Device uses it; others may do its work.
struct Stream {
  int device = 0;
  std::mutex mutex;  // guards what follows, and is held while its work is done
  std::deque<std::function<int()>> work;
  int error = 0;  // the first one of work that was done
  bool records = false;
  std::vector<std::function<int()>> recorded;

  /// Does so many steps at most.
  void advance(std::size_t steps) {
    const std::lock_guard lock(mutex);
    for (; steps > 0 && !work.empty(); --steps) {
      const std::function<int()> step = std::move(work.front());
      work.pop_front();
      count_queued(-1);
      const int found = step();
      if (error == 0) error = found;
    }
  }
  /// The steps that are left, and what came of them.
  std::pair<std::deque<std::function<int()>>, int> take() {
    const std::lock_guard lock(mutex);
    count_queued(-static_cast<std::ptrdiff_t>(work.size()));
    return {std::exchange(work, {}), std::exchange(error, 0)};
  }
};

/// When work is done, and the streams that may have some.
struct Order {
  std::mutex mutex;
  Lateness lateness = Lateness::kAtWait;
  std::mt19937 random;
  std::set<Stream*> streams;
};

Order& order() {
  static Order instance;
  return instance;
}

/// Something happens on a stream: others go on meanwhile, and it itself. A stream is destroyed by
/// the thread that uses it, which holds the lock for that.
void go_on(Stream& stream) {
  Order& o = order();
  const std::lock_guard lock(o.mutex);
  if (o.lateness == Lateness::kAtOnce) stream.advance(std::numeric_limits<std::size_t>::max());
  if (o.lateness != Lateness::kAnyTime) return;
  for (Stream* const each : o.streams) {
    if (o.random() % 2 == 0) each->advance(o.random() % 4);
  }
}

void push(Stream& stream, std::function<int()> step) {
  if (stream.records) {
    stream.recorded.push_back(std::move(step));
    return;
  }
  {
    const std::lock_guard lock(stream.mutex);
    stream.work.push_back(std::move(step));
  }
  count_queued(1);
  go_on(stream);
}

struct Graph {
  std::vector<std::function<int()>> work;
};

/// Whether this is not memory of another device.
bool belongs(const void* memory, int device) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const auto* const at = static_cast<const std::byte*>(memory);
  auto block = s.blocks.upper_bound(at);
  if (block == s.blocks.begin()) return true;
  --block;
  return at >= block->first + block->second.bytes || block->second.device == device;
}

template <typename T>
bool belongs(const T&, int) {
  return true;
}
template <typename T>
bool belongs(T* memory, int device) {
  return belongs(static_cast<const void*>(memory), device);
}
bool belongs(const cuda::DeviceMap& map, int device) { return belongs(map.data, device); }
bool belongs(const cuda::Convolution& what, int device) {
  return belongs(what.input.data, device) && belongs(what.output.data, device) &&
         belongs(what.weights, device) && belongs(what.bias, device);
}
bool belongs(const cuda::Pixels& pixels, int device) { return belongs(pixels.data, device); }
bool belongs(const cuda::FilterTaps& taps, int device) { return belongs(taps.weights, device); }
bool belongs(const cuda::GuideTaps& taps, int device) { return belongs(taps.t, device); }
bool belongs(const cuda::MaskTaps& taps, int device) { return belongs(taps.mask, device); }
bool belongs(const cuda::GuidePlanes& guide, int device) {
  return belongs(guide.planes[0], device);
}

template <auto kFunction, typename Type>
struct Queued;

/// A function of the table whose last argument is the stream.
template <auto kFunction, typename... Arguments>
struct Queued<kFunction, int (*Table::*)(Arguments...)> {
  static int call(Arguments... arguments) {
    if (const int error = error_of(); error != 0) return error;
    const std::tuple<Arguments...> all(arguments...);
    auto* const stream = static_cast<Stream*>(std::get<sizeof...(Arguments) - 1>(all));
    const auto fits = [&](const auto&... each) { return (belongs(each, stream->device) && ...); };
    if (stream->device != current_device || !std::apply(fits, all)) return kOtherDevice;
    push(*stream, [all] { return std::apply(executor().*kFunction, all); });
    const std::lock_guard lock(state().mutex);
    ++state().work[static_cast<std::size_t>(current_device)];
    return 0;
  }
};

template <auto kFunction>
void queue(Table& table) {
  table.*kFunction = Queued<kFunction, decltype(kFunction)>::call;
}

template <auto kFunction, typename... Arguments>
struct Queued<kFunction, int (*cuda::NetworkTable::*)(Arguments...)> {
  static int call(Arguments... arguments) {
    if (const int error = error_of(); error != 0) return error;
    const std::tuple<Arguments...> all(arguments...);
    auto* const stream = static_cast<Stream*>(std::get<sizeof...(Arguments) - 1>(all));
    const auto fits = [&](const auto&... each) { return (belongs(each, stream->device) && ...); };
    if (stream->device != current_device || !std::apply(fits, all)) return kOtherDevice;
    push(*stream, [all] { return std::apply(executor().network.*kFunction, all); });
    return 0;
  }
};

template <auto kFunction>
void queue(cuda::NetworkTable& table) {
  table.*kFunction = Queued<kFunction, decltype(kFunction)>::call;
}

int begin_graph(void* stream) {
  if (const int error = error_of(); error != 0) return error;
  static_cast<Stream*>(stream)->records = true;
  return 0;
}

int end_graph(void** graph, void* of) {
  auto* const stream = static_cast<Stream*>(of);
  stream->records = false;
  const std::vector<std::function<int()>> recorded = std::move(stream->recorded);
  stream->recorded.clear();
  if (const int error = error_of(); error != 0) return error;
  *graph = new Graph{recorded};
  hold(1);
  return 0;
}

int launch_graph(void* graph, void* stream) {
  if (const int error = error_of(); error != 0) return error;
  for (const auto& step : static_cast<Graph*>(graph)->work)
    push(*static_cast<Stream*>(stream), step);
  return 0;
}

/// All tiles take equally long: the device does nothing before its stream is waited for.
int start_clock(void** clock, void*) {
  *clock = nullptr;
  return error_of();
}

int stop_clock(void*, float* ms, void*) {
  *ms = 1;
  return error_of();
}

int destroy_graph(void* graph) {
  hold(-1);
  delete static_cast<Graph*>(graph);
  return error_of();
}

/// A copy between host and device.
template <auto kFunction, std::size_t HostCopies::*kBytes>
int copy(void* to, const void* from, std::size_t bytes, void* stream) {
  {
    const std::lock_guard lock(state().mutex);
    state().copies.*kBytes += bytes;
  }
  return Queued<kFunction, decltype(kFunction)>::call(to, from, bytes, stream);
}

template <Kind kKind>
int allocate(std::size_t bytes, void** memory) {
  if (const int error = error_of(kKind); error != 0) return error;
  const int error = executor().allocate(bytes, memory);
  if (error != 0) return error;
  std::memset(*memory, 0xFF, bytes);
  hold(1);
  const std::lock_guard lock(state().mutex);
  state().blocks[static_cast<std::byte*>(*memory)] = {bytes, current_device};
  return 0;
}

/// Releases even where it fails: a lost device has no memory.
int release(void* memory) {
  hold(-1);
  {
    const std::lock_guard lock(state().mutex);
    const auto block = state().blocks.find(static_cast<std::byte*>(memory));
    std::memset(memory, 0xFF, block->second.bytes);
    state().blocks.erase(block);
  }
  (void)executor().release(memory);
  return error_of();
}

int create_stream(void** stream) {
  if (const int error = error_of(); error != 0) return error;
  auto* const made = new Stream;
  made->device = current_device;
  *stream = made;
  hold(1);
  const std::lock_guard lock(order().mutex);
  order().streams.insert(made);
  return 0;
}

int destroy_stream(void* stream) {
  hold(-1);
  {
    const std::lock_guard lock(order().mutex);
    order().streams.erase(static_cast<Stream*>(stream));
  }
  delete static_cast<Stream*>(stream);
  return error_of();
}

int synchronize(void* stream) {
  go_on(*static_cast<Stream*>(stream));
  auto [work, first] = static_cast<Stream*>(stream)->take();
  if (const int error = error_of(); error != 0) return error;
  for (const auto& step : work) {
    const int error = step();
    if (first == 0) first = error;
  }
  return first;
}

Table make() {
  Table table = executor();
  table.use_device = [](int number) {
    if (number < 0 || number >= kHostDevices) return kNoDevice;
    current_device = number;
    return error_of();
  };
  table.create_stream = create_stream;
  table.destroy_stream = destroy_stream;
  table.allocate = allocate<Kind::kMemory>;
  table.release = release;
  table.allocate_pinned = allocate<Kind::kPinned>;
  table.release_pinned = release;
  table.synchronize = synchronize;
  queue<&Table::clear>(table);
  table.copy_to_device = copy<&Table::copy_to_device, &HostCopies::to_device>;
  table.copy_to_host = copy<&Table::copy_to_host, &HostCopies::to_host>;
  queue<&Table::copy_on_device>(table);
  queue<&Table::network_input>(table);
  queue<&Table::probability>(table);
  queue<&Table::sum_uncertainty>(table);
  queue<&Table::constrain>(table);
  queue<&Table::restore_marked>(table);
  queue<&Table::filter_components>(table);
  queue<&Table::resize_plane>(table);
  queue<&Table::sample_colours>(table);
  queue<&Table::reduce>(table);
  queue<&Table::summarise>(table);
  queue<&Table::gather_edge_runs>(table);
  queue<&Table::deblur>(table);
  queue<&Table::local_models>(table);
  queue<&Table::foreground_colours>(table);
  queue<&Table::full_size>(table);
  queue<&cuda::NetworkTable::take_planes>(table.network);
  table.network.convolve = [](cuda::Convolution what, void* stream) {
    // Which tiles fit is known before the work is done.
    if (what.tile != 0) return cuda::NetworkTable::kWrongTile;
    return Queued<&cuda::NetworkTable::convolve, decltype(&cuda::NetworkTable::convolve)>::call(
        what, stream);
  };
  queue<&cuda::NetworkTable::max_pool>(table.network);
  queue<&cuda::NetworkTable::enlarge_map>(table.network);
  queue<&cuda::NetworkTable::add_maps>(table.network);
  queue<&cuda::NetworkTable::copy_map>(table.network);
  queue<&cuda::NetworkTable::give_plane>(table.network);
  table.network.begin_graph = begin_graph;
  table.network.end_graph = end_graph;
  table.network.launch_graph = launch_graph;
  table.network.destroy_graph = destroy_graph;
  table.network.tiles = executor().network.tiles;
  table.network.start_clock = start_clock;
  table.network.stop_clock = stop_clock;
  return table;
}

}  // namespace

const Table& host_device() {
  static const Table table = make();
  return table;
}

void set_lateness(Lateness lateness, unsigned seed) {
  const std::lock_guard lock(order().mutex);
  order().lateness = lateness;
  order().random.seed(seed);
}

void fail_at(Fault fault, int call, int device) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.fault = fault;
  s.device = device;
  s.at = call;
  s.calls = 0;
}

int calls_that_could_fail() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  return s.calls;
}

std::size_t work_of_host_device(int device) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  return s.work[static_cast<std::size_t>(device)];
}

HostCopies copied_by_host_device() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  return s.copies;
}

std::size_t queued_on_host_device() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  return s.queued;
}

std::size_t held_by_host_device() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  return s.held;
}

}  // namespace cutout::test
