#include "ort/network.h"

#include <onnxruntime_cxx_api.h>
#include <onnxruntime_session_options_config_keys.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>

#include "core/large_memory.h"
#include "ort/device_memory_budget.h"
#include "ort/failure.h"
#include "ort/provider.h"
#include "ort/rtx.h"
#include "ort/runtime.h"
#include "ort/runtime_log.h"
#include "ort/session.h"
#include "ort/tensor_network.h"

namespace cutout::ort {

namespace {

std::string describe(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += shape[i] < 0 ? "?" : std::to_string(shape[i]);
  }
  return text + "]";
}

/// Whether a declared shape, in which negative means free, admits the wanted one.
bool admits(const Shape& declared, const Shape& wanted) {
  if (declared.size() != wanted.size()) return false;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (declared[i] >= 0 && declared[i] != wanted[i]) return false;
  }
  return true;
}

/// [.., h, w] with leading ones only, of which the first may be the batch.
bool is_plane_of_each(const Shape& shape, std::int64_t batch) {
  if (shape.size() < (batch == 1 ? 2U : 3U)) return false;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool leading = i + 2 < shape.size();
    if (leading ? shape[i] != (i == 0 ? batch : 1) : shape[i] < 1) return false;
  }
  return true;
}

/// [1, n, h, w].
bool is_single_batch(const Shape& shape) {
  return shape.size() == 4 && shape[0] == 1 && elements(shape) > 0;
}

/// Runs of a batch when it is opened, for its latency.
constexpr int kTimedRuns = 3;

/// Smaller weights stay in the graph's file: a mapping of its own would waste a page.
constexpr const char* kSmallestMappedWeight = "4096";

void save_optimised(const std::string& file, Ort::SessionOptions& options) {
  options.SetOptimizedModelFilePath(file.c_str());
  const std::string weights = std::filesystem::path(file).filename().string() + ".data";
  options.AddConfigEntry(kOrtSessionOptionsOptimizedModelExternalInitializersFileName,
                         weights.c_str());
  options.AddConfigEntry(kOrtSessionOptionsOptimizedModelExternalInitializersMinSizeInBytes,
                         kSmallestMappedWeight);
}

}  // namespace

struct Network::Slot {
  /// Memory of the tensors, on the host or on a device.
  std::shared_ptr<void> input_memory;
  std::vector<std::shared_ptr<void>> output_memory;
  std::span<float> input;  // on a device where Session::device is one
  std::vector<std::span<float>> outputs;
  Ort::Value input_tensor{nullptr};
  std::vector<Ort::Value> output_tensors;
  std::optional<Ort::IoBinding> binding;
};

/// Members are destroyed in reverse order, the session last.
struct Network::Session {
  Session() = default;
  ~Session() {
    const auto turn = take_turn(provider);
    session.reset();
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  DeviceMemoryBudget::Reservation reservation;
  std::shared_ptr<void> operators;
  std::shared_ptr<Ort::Session> session;  // of TensorRT for RTX one for all sizes of batches
  /// Where the tensors lie.
  Ort::MemoryInfo memory = Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeDefault);
  DeviceMemory* device = nullptr;
  Provider provider = Provider::kCpu;
  bool bound = false;  // inputs and outputs of runs
  bool lends = false;  // NetworkOptions::lend_buffers
  std::int64_t batch = 1;
  /// Page-locked memory, which the GPU reads and writes without a copy by the driver; empty
  /// without.
  std::optional<Ort::Allocator> pinned;
  std::string input_name;
  std::vector<std::string> output_names;
  std::vector<Shape> output_shapes;  // of those that are fetched
  Shape declared_shape;              // of the input; negative: free
  Shape input_shape;                 // the default one
  std::vector<Slot> slots;

  /// Memory of the pinned allocator, which outlives it: slots are destroyed before `pinned`.
  [[nodiscard]] std::shared_ptr<void> allocate_pinned(std::size_t bytes) {
    OrtAllocator* const allocator = *pinned;
    void* const memory = allocator->Alloc(allocator, bytes);
    if (memory == nullptr) throw std::bad_alloc();
    return {memory, [allocator](void* used) { allocator->Free(allocator, used); }};
  }

  /// A tensor, its memory and its values: on the device, or here, page-locked where possible.
  /// Page-locked memory is described as that of the host, because ONNX Runtime copies outputs of a
  /// GPU to no other.
  Status make_tensor(const Shape& shape, std::shared_ptr<void>& buffer, Ort::Value& tensor,
                     std::span<float>& values) {
    const std::size_t size = elements(shape);
    if (device != nullptr) {
      CUTOUT_RETURN_IF_ERROR(device->allocate(size * sizeof(float), buffer));
    } else if (pinned) {
      buffer = allocate_pinned(size * sizeof(float));
    } else {
      buffer = allocate_tensor_memory(size * sizeof(float));
    }
    values = {static_cast<float*>(buffer.get()), size};
    tensor =
        Ort::Value::CreateTensor<float>(memory, values.data(), size, shape.data(), shape.size());
    return {};
  }

  /// Sets an input to 0.
  Status clear(std::span<float> values) const {
    if (device != nullptr) return device->clear(values.data(), values.size_bytes());
    std::ranges::fill(values, 0.0F);
    return {};
  }

  /// Throws std::logic_error where the values are on a device.
  [[nodiscard]] std::span<float> on_host(std::span<float> values) const {
    if (device != nullptr) throw std::logic_error("The network's values are on a device.");
    return values;
  }

  [[nodiscard]] bool on_gpu() const { return provider != Provider::kCpu; }

  [[nodiscard]] Placement placement() const {
    return device != nullptr ? Placement::kDevice : Placement::kHost;
  }

  /// Opens the session. On a GPU its input has one size, so that no part of the graph computes
  /// shapes, which ONNX Runtime would place on the CPU.
  Status open_session(const NetworkOptions& options, Ort::SessionOptions& settings) {
    std::string path = options.path;
    if (provider == Provider::kTensorRtRtx) {
      append_engine(options, settings, path);
    } else {
      CUTOUT_RETURN_IF_ERROR(append_provider(provider, options.gpu, settings));
    }
    const auto open = [&] {
      session = std::make_shared<Ort::Session>(environment(), path.c_str(), settings);
    };
    if (!on_gpu()) {
      open();
      return {};
    }
    fix_shape(options, settings);
    const auto turn = take_turn(provider);
    const std::string what = "The network '" + options.path + "' cannot be used on the GPU";
    Status status = guarded(true, Code::kModel, what, [&]() -> Status {
      open();
      return {};
    });
    if (status.code() != Code::kProvider) return status;
    const std::string nodes = find_nodes_on_cpu(options, settings);
    if (nodes.empty()) return status;
    return {Code::kProvider, std::string(status.message()) + " Operators: " + nodes + "."};
  }

  /// Opens the session once more with a detailed log, for the names of operators on the CPU.
  static std::string find_nodes_on_cpu(const NetworkOptions& options,
                                       Ort::SessionOptions& settings) {
    settings.SetLogSeverityLevel(ORT_LOGGING_LEVEL_VERBOSE);
    const CapturedLog log;
    try {
      const Ort::Session again(environment(), options.path.c_str(), settings);
    } catch (const Ort::Exception&) {  // as before
    }
    return nodes_on_cpu(log.text());
  }

  void fix_shape(const NetworkOptions& options, Ort::SessionOptions& settings) const {
    // The names of src/compiler/onnx/{batch,size}.ts.
    const std::pair<const char*, std::int64_t> sides[] = {
        {"batch", batch}, {"height", options.height}, {"width", options.width}};
    for (const auto& [name, value] : sides) {
      if (provider == Provider::kTensorRtRtx && name == sides[0].first) continue;
      Ort::ThrowOnError(Ort::GetApi().AddFreeDimensionOverrideByName(settings, name, value));
    }
  }

  /// Finds page-locked memory; without it, runs use ordinary memory, from which the driver copies.
  void find_pinned_memory(int device_id) {
    try {
      const Ort::MemoryInfo info("CudaPinned", OrtDeviceAllocator, device_id, OrtMemTypeCPUOutput);
      pinned.emplace(*session, info);
    } catch (const Ort::Exception& error) {
      log_line(ORT_LOGGING_LEVEL_WARNING, first_line(error.what()).c_str());
    }
  }

  /// Opens the file and checks what it declares.
  Status open(const NetworkOptions& options) {
    provider = options.provider;
    if (session == nullptr) {
      Ort::SessionOptions settings = session_options(options.intra_op_threads);
      if (on_gpu()) settings.SetLogSeverityLevel(ORT_LOGGING_LEVEL_WARNING);
      if (!options.save_to.empty()) save_optimised(options.save_to, settings);
      CUTOUT_RETURN_IF_ERROR(add_operators(options.operators, settings, operators));
      CUTOUT_RETURN_IF_ERROR(open_session(options, settings));
    }
    device = options.memory;
    if (on_gpu() && device != nullptr) {
      memory =
          Ort::MemoryInfo("Cuda", OrtDeviceAllocator, options.gpu.device_id, OrtMemTypeDefault);
    } else if (on_gpu() && !copies_values(provider)) {
      find_pinned_memory(options.gpu.device_id);
    }
    const Ort::AllocatorWithDefaultOptions allocator;
    const auto wanted = static_cast<std::size_t>(options.outputs);
    if (session->GetInputCount() != 1 || session->GetOutputCount() < wanted) {
      return {Code::kModel, "The network '" + options.path + "' has " +
                                std::to_string(session->GetInputCount()) + " inputs and " +
                                std::to_string(session->GetOutputCount()) +
                                " outputs; one input and at least " +
                                (wanted == 1 ? "one output" : std::to_string(wanted) + " outputs") +
                                " are needed."};
    }
    input_name = session->GetInputNameAllocated(0, allocator).get();
    CUTOUT_RETURN_IF_ERROR(check_float(session->GetInputTypeInfo(0), options.path, "input"));
    for (std::size_t i = 0; i < wanted; ++i) {
      output_names.emplace_back(session->GetOutputNameAllocated(i, allocator).get());
      const std::string which = "output " + std::to_string(i);
      CUTOUT_RETURN_IF_ERROR(check_float(session->GetOutputTypeInfo(i), options.path, which));
    }
    input_shape = {batch, 3, options.height, options.width};
    declared_shape = session->GetInputTypeInfo(0).GetTensorTypeAndShapeInfo().GetShape();
    if (!admits(declared_shape, input_shape)) {
      return {Code::kModel, "The network '" + options.path + "' wants an input of shape " +
                                describe(declared_shape) + ", its manifest gives " +
                                describe(input_shape) + "."};
    }
    return {};
  }

  static Status check_float(const Ort::TypeInfo& type, const std::string& path,
                            const std::string& which) {
    if (type.GetONNXType() == ONNX_TYPE_TENSOR &&
        type.GetTensorTypeAndShapeInfo().GetElementType() == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT) {
      return {};
    }
    return {Code::kModel, "The network '" + path + "' does not have float32 values as its " +
                              which + "; `cutout models prepare` makes such a file."};
  }

  /// Runs the network; ONNX Runtime allocates those `outputs` that are empty.
  void run(const Ort::Value& input, std::vector<Ort::Value>& outputs, const CancelToken& token) {
    std::vector<const char*> names;
    for (std::size_t i = 0; i < outputs.size(); ++i) names.push_back(output_names[i].c_str());
    const char* const name = input_name.c_str();
    const Interruptible run(token);
    const auto turn = take_turn(provider);
    session->Run(run.options, &name, &input, 1, names.data(), outputs.data(), outputs.size());
  }

  /// A run of the usual size on the slot's buffers.
  void run(Slot& slot, const CancelToken& token) {
    if (!slot.binding) {
      run(slot.input_tensor, slot.output_tensors, token);
      return;
    }
    const Interruptible run(token);
    const auto turn = take_turn(provider);
    // ONNX Runtime waits for its own stream; SynchronizeInputs and -Outputs would wait for the work
    // of all others on the device.
    session->Run(run.options, *slot.binding);
  }

  /// A run of another size than the default one. ONNX Runtime allocates the output, whose size is
  /// not known before; it is copied to the slot's buffer.
  Status run_smaller(Slot& slot, const Shape& shape, const CancelToken& token, TensorView& plane) {
    const Ort::Value input = Ort::Value::CreateTensor<float>(
        memory, slot.input.data(), elements(shape), shape.data(), shape.size());
    std::vector<Ort::Value> outputs;
    outputs.emplace_back(nullptr);
    run(input, outputs, token);
    const Shape given = outputs.front().GetTensorTypeAndShapeInfo().GetShape();
    const std::span<float> output = slot.outputs.front();
    if (!is_plane_of_each(given, 1) || elements(given) > output.size()) {
      return {Code::kModel, "Output 0 of the network has the shape " + describe(given) +
                                " for an input of " + describe(shape) + "."};
    }
    plane = plane_of(output, given);
    // Never on a GPU, where takes() refuses such sizes.
    std::copy_n(outputs.front().GetTensorData<float>(), plane.size(), output.begin());
    return {};
  }

  [[nodiscard]] TensorView plane_of(std::span<float> values, const Shape& shape) const {
    TensorView plane = host_tensor(values, 1, static_cast<int>(shape[shape.size() - 2]),
                                   static_cast<int>(shape.back()));
    plane.placement = placement();
    return plane;
  }

  Status make_input(Slot& slot) {
    return make_tensor(input_shape, slot.input_memory, slot.input_tensor, slot.input);
  }

  Status make_outputs(Slot& slot) {
    if (bound) {
      slot.binding.emplace(*session);
      slot.binding->BindInput(input_name.c_str(), slot.input_tensor);
    }
    for (std::size_t i = 0; i < output_shapes.size(); ++i) {
      Ort::Value& value = slot.output_tensors.emplace_back(nullptr);
      CUTOUT_RETURN_IF_ERROR(make_tensor(output_shapes[i], slot.output_memory.emplace_back(), value,
                                         slot.outputs.emplace_back()));
      if (slot.binding) slot.binding->BindOutput(output_names[i].c_str(), value);
    }
    return {};
  }

  /// Opens a slot; has no effect on a slot that is open; a slot that cannot be opened is left as it
  /// was.
  Status open_slot(Slot& slot) {
    if (!slot.outputs.empty()) return {};
    Slot opened;
    CUTOUT_RETURN_IF_ERROR(make_input(opened));
    CUTOUT_RETURN_IF_ERROR(make_outputs(opened));
    slot = std::move(opened);
    return {};
  }

  /// Opens the first slot, and all of them unless they lie on a device or are lent; the first run
  /// gives the sizes of the outputs.
  Status warm_up(const NetworkOptions& options, const CancelToken& token) {
    bound = options.bind || device != nullptr;
    lends = options.lend_buffers && device == nullptr && !pinned;
    slots.resize(static_cast<std::size_t>(options.slots));
    CUTOUT_RETURN_IF_ERROR(make_input(slots.front()));
    CUTOUT_RETURN_IF_ERROR(clear(slots.front().input));
    std::vector<Ort::Value> first;
    for (int i = 0; i < options.outputs; ++i) first.emplace_back(nullptr);
    run(slots.front().input_tensor, first, token);
    for (std::size_t i = 0; i < first.size(); ++i) {
      const Shape shape = first[i].GetTensorTypeAndShapeInfo().GetShape();
      if (options.outputs == 1 ? !is_plane_of_each(shape, batch) : !is_single_batch(shape)) {
        return {Code::kModel, "Output " + std::to_string(i) + " of the network '" + options.path +
                                  "' has the shape " + describe(shape) + "; " +
                                  (options.outputs == 1 ? "one map [1, 1, h, w] is needed."
                                                        : "maps [1, n, h, w] are needed.")};
      }
      output_shapes.push_back(shape);
    }
    CUTOUT_RETURN_IF_ERROR(make_outputs(slots.front()));
    if (device != nullptr || lends) return {};
    for (Slot& slot : slots) CUTOUT_RETURN_IF_ERROR(open_slot(slot));
    return {};
  }
};

Network::Network() : session_(std::make_unique<Session>()) {}
Network::~Network() = default;

Status Network::open(const NetworkOptions& options, const CancelToken& token,
                     std::unique_ptr<Network>& network) {
  CUTOUT_RETURN_IF_ERROR(check_file(options.path));
  std::unique_ptr<Network> opened(new Network());
  const std::string what = "The network '" + options.path + "' cannot be used";
  const bool gpu = options.provider != Provider::kCpu;
  const Status status = guarded(gpu, Code::kModel, what, [&]() -> Status {
    const Clock::time_point start = Clock::now();
    Clock::time_point loaded;
    if (options.opening) options.opening(1);
    const auto open_session = [&]() -> Status {
      CUTOUT_RETURN_IF_ERROR(opened->session_->open(options));
      loaded = Clock::now();
      CUTOUT_RETURN_IF_ERROR(token.check());
      return opened->session_->warm_up(options, token);
    };
    CUTOUT_RETURN_IF_ERROR(DeviceMemoryBudget::reserve_session(
        options.budget, what, 0, open_session, opened->session_->reservation));
    opened->load_ms_ = milliseconds(start, loaded);
    opened->warm_up_ms_ = milliseconds(loaded, Clock::now());
    opened->open_batches(options, token);
    opened->close_slot(0);
    return {};
  });
  CUTOUT_RETURN_IF_ERROR(token.check());
  CUTOUT_RETURN_IF_ERROR(status);
  network = std::move(opened);
  return {};
}

void Network::open_batches(const NetworkOptions& options, const CancelToken& token) {
  if (options.batches.empty() && !options.timed) return;
  // The fastest of some, because a size that seems slow is never chosen and thus never corrected.
  const auto timed = [&](Session& session) {
    double fastest = std::numeric_limits<double>::infinity();
    for (int i = 0; i < kTimedRuns; ++i) {
      const Clock::time_point start = Clock::now();
      session.run(session.slots.front(), token);
      fastest = std::min(fastest, milliseconds(start, Clock::now()));
    }
    return fastest;
  };
  std::vector<BatchTiming> timings{{1, timed(*session_)}};
  for (const int size : options.batches) {
    const Status status = guarded(session_->on_gpu(), Code::kModel, "it cannot be opened", [&] {
      const Status opened = open_batch(options, size, token);
      if (opened.ok()) timings.push_back({static_cast<std::size_t>(size), timed(*batches_.back())});
      return opened;
    });
    if (token.stopped()) return;
    if (status.ok()) continue;
    batches_.resize(timings.size() - 1);
    log_line(ORT_LOGGING_LEVEL_WARNING,
             ("Batches of " + std::to_string(size) + " and more are not used: " + status.message())
                 .c_str());
    break;
  }
  if (timings.size() > 1 || options.timed) timings_ = std::move(timings);
}

Status Network::open_batch(const NetworkOptions& options, int size, const CancelToken& token) {
  if (options.opening) options.opening(size);
  NetworkOptions of_batch = options;
  of_batch.slots = 1;
  of_batch.save_to.clear();
  if (!options.gpu.engine_cache.empty() && options.provider == Provider::kTensorRt) {
    // TensorRT's names of engines do not depend on the batch.
    of_batch.gpu.engine_cache += "/batch-" + std::to_string(size);
    std::filesystem::create_directories(of_batch.gpu.engine_cache);
  }
  // It takes at least what the batch of half its size does.
  const std::uint64_t half = (batches_.empty() ? session_ : batches_.back())->reservation.bytes();
  Session& batch = *batches_.emplace_back(std::make_unique<Session>());
  batch.batch = size;
  if (options.provider == Provider::kTensorRtRtx) batch.session = session_->session;
  const auto open_session = [&]() -> Status {
    CUTOUT_RETURN_IF_ERROR(batch.open(of_batch));
    return batch.warm_up(of_batch, token);
  };
  CUTOUT_RETURN_IF_ERROR(DeviceMemoryBudget::reserve_session(
      options.budget, "it cannot be opened", half, open_session, batch.reservation));
  const Shape& shape = batch.output_shapes.front();
  if (elements(shape) != static_cast<std::size_t>(size) * elements(output_shape(0))) {
    return {Code::kModel, "its output has the shape " + describe(shape) + "."};
  }
  return {};
}

Status Network::run_batch(std::size_t size, std::span<const int> slots, const CancelToken& token,
                          ThreadPool& pool) {
  if (size == 1) return run(slots.front(), token);
  const auto found = std::ranges::find_if(batches_, [size](const auto& session) {
    return session->batch == static_cast<std::int64_t>(size);
  });
  if (found == batches_.end()) {
    return {Code::kDeviceMemory,
            "There was not enough device memory for batches of " + std::to_string(size) + "."};
  }
  Session& session = **found;
  Slot& batch = session.slots.front();
  const auto slot = [&](std::size_t i) -> Slot& {
    return session_->slots[static_cast<std::size_t>(slots[i])];
  };
  const auto place = [size](std::span<float> all, std::size_t i) {
    return all.subspan(i * (all.size() / size), all.size() / size);
  };
  /// Between the values of each image, and its place in the batch.
  const auto copy_each = [&](const auto& from, const auto& to) -> Status {
    if (session.device != nullptr) {
      std::vector<DeviceCopy> copies;
      for (std::size_t i = 0; i < slots.size(); ++i)
        copies.push_back({to(i).data(), from(i).data(), to(i).size_bytes()});
      return session.device->copy(copies);
    }
    pool.parallel_for(slots.size(), 1, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) std::ranges::copy(from(i), to(i).begin());
    });
    return {};
  };
  CUTOUT_RETURN_IF_ERROR(copy_each([&](std::size_t i) { return slot(i).input; },
                                   [&](std::size_t i) { return place(batch.input, i); }));
  CUTOUT_RETURN_IF_ERROR(run_session(session, batch, token));
  return copy_each([&](std::size_t i) { return place(batch.outputs.front(), i); },
                   [&](std::size_t i) { return slot(i).outputs.front(); });
}

Status Network::open_slot(int slot) {
  return guarded(
      session_->on_gpu(), Code::kInternal, "A slot of the network cannot be opened",
      [&] { return session_->open_slot(session_->slots[static_cast<std::size_t>(slot)]); });
}

void Network::close_slot(int slot) noexcept {
  if (session_->lends) session_->slots[static_cast<std::size_t>(slot)] = Slot();
}

Status Network::run_session(Session& session, Slot& slot, const CancelToken& token) {
  Status status = guarded_run(session.on_gpu(), Code::kInternal, token, [&]() -> Status {
    session.run(slot, token);
    return {};
  });
  // cuDNN does not say that the device is lost.
  if (status.code() == Code::kInternal && session.device != nullptr) {
    const Status device = session.clear(slot.input);
    if (device.code() == Code::kDevice) return device;
  }
  return status;
}

Status Network::check(const CancelToken& token) {
  const auto check_session = [&](Session& session) -> Status {
    Slot& slot = session.slots.front();
    if (session.lends) CUTOUT_RETURN_IF_ERROR(open_slot(0));
    CUTOUT_RETURN_IF_ERROR(session.clear(slot.input));
    return run_session(session, slot, token);
  };
  CUTOUT_RETURN_IF_ERROR(check_session(*session_));
  for (const auto& batch : batches_) CUTOUT_RETURN_IF_ERROR(check_session(*batch));
  return {};
}

TensorView Network::input_tensor(int slot, int width, int height) {
  const std::span<float> values = session_->slots[static_cast<std::size_t>(slot)].input;
  TensorView tensor = host_tensor(values, 3, height, width);
  tensor.placement = session_->placement();
  return tensor;
}

const Shape& Network::output_shape(int index) const {
  return session_->output_shapes[static_cast<std::size_t>(index)];
}

TensorView Network::output_plane(int slot) {
  const Slot& buffers = session_->slots[static_cast<std::size_t>(slot)];
  return session_->plane_of(buffers.outputs.front(), output_shape(0));
}

std::span<float> Network::input(int slot) {
  const Slot& buffers = session_->slots[static_cast<std::size_t>(slot)];
  return session_->on_host(buffers.input);
}

std::span<float> Network::output(int slot, int index) {
  const Slot& buffers = session_->slots[static_cast<std::size_t>(slot)];
  return session_->on_host(buffers.outputs[static_cast<std::size_t>(index)]);
}

Status Network::run(int slot, const CancelToken& token) {
  return run_session(*session_, session_->slots[static_cast<std::size_t>(slot)], token);
}

bool Network::takes(int width, int height) const {
  const Shape shape{1, 3, height, width};
  // On a GPU the session was opened for one size.
  if (session_->on_gpu()) return shape == session_->input_shape;
  return width > 0 && height > 0 && admits(session_->declared_shape, shape) &&
         elements(shape) <= elements(session_->input_shape);
}

Status Network::run(int slot, int width, int height, const CancelToken& token, TensorView& plane) {
  const Shape shape{1, 3, height, width};
  if (!takes(width, height)) {
    return {Code::kModel, "The network cannot run an image of shape " + describe(shape) +
                              ": its input is " + describe(session_->declared_shape) +
                              ", at most " + describe(session_->input_shape) + "."};
  }
  Slot& buffers = session_->slots[static_cast<std::size_t>(slot)];
  if (shape == session_->input_shape) {
    CUTOUT_RETURN_IF_ERROR(run(slot, token));
    plane = output_plane(slot);
    return {};
  }
  return guarded_run(session_->on_gpu(), Code::kInternal, token, [&]() -> Status {
    return session_->run_smaller(buffers, shape, token, plane);
  });
}

}  // namespace cutout::ort
