#include "pipeline/gpu_network.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <fstream>
#include <limits>

#include "core/cancel.h"
#include "ort/runtime_log.h"

namespace cutout {

namespace {

using cuda::DeviceMap;
using cuda::NetworkTable;
using low_precision::Conv;
using low_precision::Kind;
using low_precision::Operation;
using low_precision::Type;

/// The head of a file: this magic, then numbers of 32 bits; the arrays follow, each aligned to 8
/// bytes.
constexpr std::array<char, 8> kMagic = {'C', 'U', 'T', 'O', 'U', 'T', 'G', '1'};
struct FileHeader {
  std::uint32_t code = 0;     // numbers of 64 bits
  std::uint32_t floats = 0;   // of 32 bits
  std::uint32_t weights = 0;  // bytes, float16
  std::uint32_t factor = 1;   // by which the plane that comes out is enlarged
};

constexpr int kImageChannels = 3;
constexpr int kTimedRuns = 3;
constexpr std::uint32_t kMostEnlargement = 64;

std::size_t aligned(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

Status unusable(const std::string& path, const std::string& why) {
  return {Code::kModel, "The network '" + path + "' cannot be used on the GPU: " + why + "."};
}

void log_left_out(int images, const Status& status) {
  const std::string line =
      "Batches of " + std::to_string(images) + " and more are not used: " + status.message();
  ort::log_line(ort::kWarning, line.c_str());
}

/// The weights of a convolution as [output][tap][channel], from the order of low_precision::Conv.
void unpack_weights(const Conv& conv, std::uint16_t* to) {
  using low_precision::kChunkBytes;
  using low_precision::kLanes;
  const int row = conv.kernel_height * conv.kernel_width * conv.channels;
  const auto* from = reinterpret_cast<const std::uint16_t*>(conv.weights.data());
  for (int group = 0; group < conv.groups(); ++group) {
    for (const low_precision::Chunk& chunk : conv.chunks) {
      for (int i = 0; i < chunk.bytes / 2; ++i) {
        const int at = chunk.offset / 2 + i;
        const int tap = chunk.row * conv.kernel_width + chunk.column + at / conv.channels;
        std::uint16_t* const place = to + tap * conv.channels + at % conv.channels;
        for (int lane = 0; lane < kLanes; ++lane) {
          place[static_cast<std::ptrdiff_t>(group * kLanes + lane) * row] =
              from[(i / 2 * kLanes + lane) * 2 + i % 2];
        }
      }
      from += kChunkBytes / 2;
    }
  }
}

/// Whether an operation is one that cuda/network/table.h has.
bool is_supported(const Operation& operation, const std::vector<low_precision::Value>& values) {
  const auto type = [&](int value) { return values[static_cast<std::size_t>(value)].type; };
  // 16 bits; the weights of such a file are float16, which decides how they are computed with.
  const bool half =
      std::ranges::all_of(operation.inputs, [&](int value) { return type(value) == Type::kBf16; });
  switch (operation.kind) {
    case Kind::kInput:
    case Kind::kMaxPool:
    case Kind::kResize:
    case Kind::kConcat:
      return half && type(operation.output) == Type::kBf16;
    case Kind::kConv: {
      const Conv& conv = operation.conv;
      const bool image = conv.channels == 4 && type(operation.output) == Type::kBf16;
      return half && (image || conv.channels % 16 == 0) && conv.channel % 8 == 0 &&
             conv.kernel_height * conv.kernel_width <= cuda::kMostTaps;
    }
    case Kind::kCombine:
      return half && operation.inputs.size() == 2 && type(operation.output) == Type::kBf16;
    case Kind::kPlanes:
      return operation.channels == 1 && type(operation.inputs.front()) == Type::kFloats;
    default:
      return false;
  }
}

/// Whether the kernels can run a program: its operations, their order, and that 16 bytes of a map's
/// channels lie together everywhere but in the image. `checkOperations`
/// (src/compiler/lowPrecision/gpu.ts) writes no other program.
bool is_supported(const low_precision::Program& program) {
  const std::vector<Operation>& operations = program.operations();
  const int image = operations.front().output;
  for (const Operation& operation : operations) {
    const bool first = &operation == &operations.front();
    const bool last = &operation == &operations.back();
    if ((operation.kind == Kind::kInput) != first || operation.outward() != last) return false;
    const bool reads_image = std::ranges::find(operation.inputs, image) != operation.inputs.end();
    const bool as_image = operation.kind == Kind::kConv && operation.conv.channels == 4 &&
                          operation.conv.channel == 0 && operation.inputs.size() == 1;
    if (reads_image ? !as_image : operation.kind == Kind::kConv && operation.conv.channels == 4)
      return false;
    if (!is_supported(operation, program.values())) return false;
  }
  for (std::size_t value = 0; value < program.values().size(); ++value) {
    const bool is_image = static_cast<int>(value) == image;
    const int channels = program.values()[value].channels;
    if (is_image ? channels != 4 : channels % low_precision::kLanes != 0) return false;
  }
  return true;
}

}  // namespace

Status GpuNetwork::open(const GpuNetworkOptions& options, Device& device, const CancelToken& token,
                        std::unique_ptr<Network>& network) {
  const Clock::time_point start = Clock::now();
  std::unique_ptr<GpuNetwork> opened(new GpuNetwork(device));
  opened->width_ = options.width;
  opened->height_ = options.height;
  CUTOUT_RETURN_IF_ERROR(opened->read(options.path));
  CUTOUT_RETURN_IF_ERROR(
      low_precision::Plan::make(opened->program_, options.width, options.height, opened->plan_));
  std::uint8_t none = 0;  // only the size is asked for
  const low_precision::Map plane = opened->plan_.map(opened->output_value_, &none);
  opened->output_width_ = plane.width * opened->output_factor_;
  opened->output_height_ = plane.height * opened->output_factor_;
  CUTOUT_RETURN_IF_ERROR(opened->upload_constants());
  opened->slots_.resize(static_cast<std::size_t>(options.slots));
  CUTOUT_RETURN_IF_ERROR(opened->open_slot(0));
  CUTOUT_RETURN_IF_ERROR(token.check());
  CUTOUT_RETURN_IF_ERROR(opened->open_batches(options, token));
  // As of other networks, that of a run alone: estimates begin with it.
  opened->warm_up_ms_ = opened->timings_.front().ms;
  opened->load_ms_ = milliseconds(start, Clock::now()) - opened->warm_up_ms_;
  network = std::move(opened);
  return {};
}

GpuNetwork::~GpuNetwork() {
  for (void* const graph : graphs_) device_.destroy_graph(graph);
}

Status GpuNetwork::read(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : -1;
  if (size < 0) {
    return {Code::kModel, "The network file '" + path + "' does not exist or cannot be read."};
  }
  file_.resize(static_cast<std::size_t>(size));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(file_.data()), static_cast<std::streamsize>(file_.size()));
  FileHeader head;
  const std::size_t before = kMagic.size() + sizeof head;
  if (!file || file_.size() < before ||
      std::memcmp(file_.data(), kMagic.data(), kMagic.size()) != 0) {
    return unusable(path, "it is no program for a GPU");
  }
  std::memcpy(&head, file_.data() + kMagic.size(), sizeof head);
  std::size_t at = before;
  const auto take = [&]<typename T>(std::size_t count, std::span<const T>& values) {
    const std::size_t bytes = count * sizeof(T);
    if (bytes > file_.size() - at) return false;
    values = {reinterpret_cast<const T*>(file_.data() + at), count};
    at = std::min(aligned(at + bytes, 8), file_.size());
    return true;
  };
  std::span<const std::int64_t> code;
  std::span<const float> floats;
  std::span<const std::int8_t> weights;
  if (!take(head.code, code) || !take(head.floats, floats) || !take(head.weights, weights))
    return unusable(path, "it is cut short");
  if (head.factor < 1 || head.factor > kMostEnlargement)
    return unusable(path, "its output is enlarged by another factor than 1 to 64");
  CUTOUT_RETURN_IF_ERROR(low_precision::Program::read(code, floats, {}, weights, program_));
  if (program_.outputs() != 1 || program_.input_channels() != kImageChannels) {
    return unusable(path, "it has not one output for an image");
  }
  if (!is_supported(program_)) return unusable(path, "it has an operation that these kernels lack");
  output_factor_ = static_cast<int>(head.factor);
  program_.join_sums();
  for (const Operation& operation : program_.operations()) {
    if (operation.outward()) output_value_ = operation.inputs.front();
  }
  return {};
}

Status GpuNetwork::upload_constants() {
  const std::vector<Operation>& operations = program_.operations();
  std::vector<std::size_t> places;  // of weights and bias of each convolution
  std::size_t bytes = 0;
  const auto place = [&](std::size_t size) {
    places.push_back(bytes);
    bytes = aligned(bytes + size, 256);
  };
  for (const Operation& operation : operations) {
    if (operation.kind != Kind::kConv) continue;
    const Conv& conv = operation.conv;
    place(sizeof(std::uint16_t) * static_cast<std::size_t>(conv.outputs) *
          static_cast<std::size_t>(conv.kernel_height * conv.kernel_width * conv.channels));
    place(sizeof(float) * static_cast<std::size_t>(conv.outputs));
  }
  std::vector<std::byte> all(bytes);
  DeviceCall call(device_);
  auto* const memory = call.allocate<std::byte>(bytes, constants_);
  constants_of_.resize(operations.size());
  auto next = places.begin();
  for (std::size_t i = 0; i < operations.size() && memory != nullptr; ++i) {
    if (operations[i].kind != Kind::kConv) continue;
    const Conv& conv = operations[i].conv;
    const std::size_t weights = *next++;
    const std::size_t bias = *next++;
    unpack_weights(conv, reinterpret_cast<std::uint16_t*>(all.data() + weights));
    std::memcpy(all.data() + bias, conv.float_bias.data(), conv.float_bias.size_bytes());
    constants_of_[i] = {reinterpret_cast<const std::uint16_t*>(memory + weights),
                        reinterpret_cast<const float*>(memory + bias)};
  }
  call.run<&cuda::Table::copy_to_device>(memory, all.data(), bytes);
  CUTOUT_RETURN_IF_ERROR(call.finish());
  file_ = {};  // what of the program lies in it is not read any longer
  return {};
}

Status GpuNetwork::open_batches(const GpuNetworkOptions& options, const CancelToken& token) {
  // Half of the batch until its maps fit.
  int largest = options.largest_batch;
  for (;; largest /= 2) {
    const Status status =
        device_.allocate(static_cast<std::size_t>(largest) * plan_.bytes(), maps_);
    if (status.ok()) break;
    if (status.code() != Code::kDeviceMemory || largest == 1) return status;
    log_left_out(largest, status);
  }
  for (int images = 1; images <= largest; ++images) {
    Status status;
    if (std::has_single_bit(static_cast<unsigned>(images))) {
      if (options.opening) options.opening(images);
      status = choose_tiles(images);
    }
    if (status.ok()) status = record(images);
    CUTOUT_RETURN_IF_ERROR(token.check());
    if (status.code() == Code::kDeviceMemory && images > 1) {
      log_left_out(images, status);
      largest = images - 1;
      for (; graphs_.size() >= static_cast<std::size_t>(images); graphs_.pop_back())
        device_.destroy_graph(graphs_.back());
    } else {
      CUTOUT_RETURN_IF_ERROR(status);
    }
  }
  std::vector<int> slots;
  for (int images = 1; images <= largest; ++images) {
    slots.push_back(0);
    if (!std::has_single_bit(static_cast<unsigned>(images)) && images != largest) continue;
    // The fastest of some, because a size that seems slow is never chosen and thus never corrected.
    double fastest = std::numeric_limits<double>::infinity();
    for (int i = 0; i < kTimedRuns; ++i) {
      const Clock::time_point start = Clock::now();
      CUTOUT_RETURN_IF_ERROR(run_images(slots));
      fastest = std::min(fastest, milliseconds(start, Clock::now()));
    }
    timings_.push_back({static_cast<std::size_t>(images), fastest});
  }
  return {};
}

Status GpuNetwork::record(int images) {
  DeviceCall call(device_);
  // Kernels are loaded when they are launched for the first time, which cannot be recorded.
  if (images == 1) queue(call, images);
  CUTOUT_RETURN_IF_ERROR(call.finish());
  void* graph = nullptr;
  graphs_.reserve(graphs_.size() + 1);
  call.run<&NetworkTable::begin_graph>();
  queue(call, images);
  call.end<&NetworkTable::end_graph>(&graph);
  if (graph != nullptr) graphs_.push_back(graph);
  return call.finish();
}

DeviceMap GpuNetwork::map(int value, int images) const {
  const low_precision::Map of_image = plan_.map(value, static_cast<std::uint8_t*>(maps_.get()));
  const int element = bytes_of(program_.values()[static_cast<std::size_t>(value)].type);
  DeviceMap map;
  map.data = of_image.data;
  map.images = images;
  map.width = of_image.width;
  map.height = of_image.height;
  map.channels = of_image.channels;
  map.pixel = static_cast<int>(of_image.stride / element);
  map.row = static_cast<int>(of_image.pitch / element);
  map.image = static_cast<std::ptrdiff_t>(plan_.bytes()) / element;
  return map;
}

cuda::Convolution GpuNetwork::convolution(std::size_t at, int images) const {
  const Operation& operation = program_.operations()[at];
  const Conv& conv = operation.conv;
  cuda::Convolution what{};
  what.input = map(operation.inputs.front(), images);
  what.input.data = static_cast<std::uint16_t*>(what.input.data) + conv.channel;
  what.input.channels = conv.channels;
  what.weights = constants_of_[at].weights;
  what.bias = constants_of_[at].bias;
  what.tile = constants_of_[at].tile;
  what.window = {conv.kernel_height, conv.kernel_width, conv.stride,
                 conv.dilation,      conv.top,          conv.left};
  what.relu = conv.relu;
  what.output = map(operation.output, images);
  what.to_floats =
      program_.values()[static_cast<std::size_t>(operation.output)].type == Type::kFloats;
  if (operation.inputs.size() > 1) what.added = map(operation.inputs[1], images);
  return what;
}

Status GpuNetwork::fastest_tile(const cuda::Convolution& convolution, int& fastest) {
  const NetworkTable& table = device_.table().network;
  float least = std::numeric_limits<float>::infinity();
  for (int tile = 0; tile < table.tiles; ++tile) {
    cuda::Convolution tried = convolution;
    tried.tile = tile;
    DeviceCall call(device_);
    // Alone first: it may not fit, and code is loaded when it is launched for the first time.
    if (!call.try_run<&NetworkTable::convolve>(NetworkTable::kWrongTile, tried)) {
      CUTOUT_RETURN_IF_ERROR(call.finish());
      continue;
    }
    void* clock = nullptr;
    float ms = 0;
    call.run<&NetworkTable::start_clock>(&clock);
    for (int i = 0; i < kTimedRuns; ++i) call.run<&NetworkTable::convolve>(tried);
    call.end<&NetworkTable::stop_clock>(clock, &ms);
    CUTOUT_RETURN_IF_ERROR(call.finish());
    if (ms >= least) continue;
    least = ms;
    fastest = tile;
  }
  return {};
}

Status GpuNetwork::choose_tiles(int images) {
  for (std::size_t at = 0; at < constants_of_.size(); ++at) {
    if (program_.operations()[at].kind != Kind::kConv) continue;
    CUTOUT_RETURN_IF_ERROR(fastest_tile(convolution(at, images), constants_of_[at].tile));
  }
  return {};
}

void GpuNetwork::queue(DeviceCall& call, int images) const {
  const std::vector<Operation>& operations = program_.operations();
  for (std::size_t at = 0; at < operations.size(); ++at) {
    const Operation& operation = operations[at];
    const auto input = [&](std::size_t i) { return map(operation.inputs[i], images); };
    switch (operation.kind) {
      case Kind::kConv:
        call.run<&NetworkTable::convolve>(convolution(at, images));
        break;
      case Kind::kMaxPool:
        call.run<&NetworkTable::max_pool>(input(0), operation.pool.kernel, operation.pool.stride,
                                          map(operation.output, images));
        break;
      case Kind::kResize:
        call.run<&NetworkTable::enlarge_map>(input(0), operation.factor,
                                             map(operation.output, images));
        break;
      case Kind::kCombine:
        call.run<&NetworkTable::add_maps>(input(0), input(1), operation.relu,
                                          map(operation.output, images));
        break;
      case Kind::kConcat: {
        DeviceMap to = map(operation.output, images);
        for (std::size_t i = 0; i < operation.inputs.size(); ++i) {
          const DeviceMap from = input(i);
          const bool there = from.data == to.data && from.pixel == to.pixel;
          if (!there) call.run<&NetworkTable::copy_map>(from, to);
          to.data = static_cast<std::uint16_t*>(to.data) + from.channels;
        }
        break;
      }
      default:  // the planes that go in and come out belong to slots
        break;
    }
  }
}

Status GpuNetwork::open_slot(int slot) {
  Slot& buffers = slots_[static_cast<std::size_t>(slot)];
  if (buffers.output != nullptr) return {};
  DeviceCall call(device_);
  Slot opened;
  call.allocate<float>(input_tensor(slot, width_, height_).size(), opened.input);
  call.allocate<float>(output_plane(slot).size(), opened.output);
  CUTOUT_RETURN_IF_ERROR(call.finish());
  buffers = std::move(opened);
  return {};
}

TensorView GpuNetwork::input_tensor(int slot, int width, int height) {
  return {slots_[static_cast<std::size_t>(slot)].input.get(), kImageChannels, height, width,
          Placement::kDevice};
}

TensorView GpuNetwork::output_plane(int slot) {
  return {slots_[static_cast<std::size_t>(slot)].output.get(), 1, output_height_, output_width_,
          Placement::kDevice};
}

Status GpuNetwork::run_images(std::span<const int> slots) {
  const auto images = static_cast<int>(slots.size());
  const std::lock_guard lock(run_mutex_);
  DeviceCall call(device_);
  const DeviceMap first = map(program_.operations().front().output, images);
  const DeviceMap last = map(output_value_, images);
  for (int i = 0; i < images; ++i) {
    const Slot& slot = slots_[static_cast<std::size_t>(slots[static_cast<std::size_t>(i)])];
    call.run<&NetworkTable::take_planes>(static_cast<const float*>(slot.input.get()),
                                         kImageChannels, i, first);
  }
  call.run<&NetworkTable::launch_graph>(graphs_[slots.size() - 1]);
  for (int i = 0; i < images; ++i) {
    const Slot& slot = slots_[static_cast<std::size_t>(slots[static_cast<std::size_t>(i)])];
    call.run<&NetworkTable::give_plane>(last, i, output_factor_,
                                        static_cast<float*>(slot.output.get()));
    if (const auto behind = slot.behind.lock()) (*behind)(call);
  }
  return call.finish();
}

Status GpuNetwork::run(int slot, int width, int height, const CancelToken& token,
                       TensorView& plane) {
  if (!takes(width, height)) {
    return {Code::kModel, "The network cannot run an image of " + std::to_string(width) + " x " +
                              std::to_string(height) + ": its input is " + std::to_string(width_) +
                              " x " + std::to_string(height_) + "."};
  }
  CUTOUT_RETURN_IF_ERROR(run_images(std::span(&slot, 1)));
  CUTOUT_RETURN_IF_ERROR(token.check());
  plane = output_plane(slot);
  return {};
}

Status GpuNetwork::run_batch(std::size_t, std::span<const int> slots, const CancelToken& token,
                             ThreadPool&) {
  if (slots.size() > graphs_.size()) {
    return {Code::kDeviceMemory, "There was not enough device memory for batches of " +
                                     std::to_string(slots.size()) + "."};
  }
  CUTOUT_RETURN_IF_ERROR(run_images(slots));
  return token.check();
}

Status GpuNetwork::check(const CancelToken& token) {
  const Slot& slot = slots_.front();
  CUTOUT_RETURN_IF_ERROR(device_.clear(slot.input.get(), input_tensor(0, width_, height_).bytes()));
  const std::vector<int> all(graphs_.size(), 0);
  CUTOUT_RETURN_IF_ERROR(run_images(std::span(all).first(1)));
  CUTOUT_RETURN_IF_ERROR(run_images(all));
  return token.check();
}

}  // namespace cutout
