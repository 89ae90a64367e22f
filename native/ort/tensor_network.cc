#include "ort/tensor_network.h"

#include <onnxruntime_cxx_api.h>
#include <onnxruntime_session_options_config_keys.h>

#include <array>
#include <fstream>
#include <map>

#include "ort/session.h"

namespace cutout::ort {

namespace {

/// Whether a file is in ONNX Runtime's own format: a flatbuffer with this identifier.
bool is_runtime_format(const std::string& path) {
  std::array<char, 8> head{};
  std::ifstream(path, std::ios::binary).read(head.data(), head.size());
  return std::string(head.data() + 4, 4) == "ORTM";
}

}  // namespace

std::size_t elements(const Shape& shape) {
  std::size_t count = 1;
  for (const std::int64_t side : shape) count *= static_cast<std::size_t>(side);
  return count;
}

struct TensorNetwork::Session {
  std::shared_ptr<void> domain;  // outlives the session
  Ort::Session session{nullptr};
  Ort::MemoryInfo memory = Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeDefault);
  std::map<std::string, Shape> inputs;
  std::map<std::string, Shape> outputs;

  /// Empty without one of that name.
  static Shape shape_in(const std::map<std::string, Shape>& shapes, const std::string& name) {
    const auto found = shapes.find(name);
    return found == shapes.end() ? Shape{} : found->second;
  }

  static void add(std::map<std::string, Shape>& to, const char* name, const Ort::TypeInfo& type) {
    if (type.GetONNXType() != ONNX_TYPE_TENSOR) return;
    const auto tensor = type.GetTensorTypeAndShapeInfo();
    if (tensor.GetElementType() == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT)
      to.emplace(name, tensor.GetShape());
  }

  Status open(const std::string& path, const std::string& operators, int intra_op_threads) {
    Ort::SessionOptions settings = session_options(intra_op_threads);
    CUTOUT_RETURN_IF_ERROR(add_operators(operators, settings, domain));
    if (is_runtime_format(path)) {
      settings.AddConfigEntry(kOrtSessionOptionsConfigLoadModelFormat, "ORT");
    }
    session = Ort::Session(environment(), path.c_str(), settings);
    const Ort::AllocatorWithDefaultOptions allocator;
    for (std::size_t i = 0; i < session.GetInputCount(); ++i) {
      add(inputs, session.GetInputNameAllocated(i, allocator).get(), session.GetInputTypeInfo(i));
    }
    for (std::size_t i = 0; i < session.GetOutputCount(); ++i) {
      add(outputs, session.GetOutputNameAllocated(i, allocator).get(),
          session.GetOutputTypeInfo(i));
    }
    return {};
  }

  [[nodiscard]] Ort::Value value(const Tensor& tensor) const {
    return Ort::Value::CreateTensor<float>(memory, tensor.values.data(), tensor.values.size(),
                                           tensor.shape.data(), tensor.shape.size());
  }
};

TensorNetwork::TensorNetwork() : session_(std::make_unique<Session>()) {}
TensorNetwork::~TensorNetwork() = default;

Status TensorNetwork::open(const std::string& path, const std::string& operators,
                           int intra_op_threads, std::unique_ptr<TensorNetwork>& network) {
  CUTOUT_RETURN_IF_ERROR(check_file(path));
  std::unique_ptr<TensorNetwork> opened(new TensorNetwork());
  CUTOUT_RETURN_IF_ERROR(guarded(
      false, Code::kModel, "The network '" + path + "' cannot be used",
      [&]() -> Status { return opened->session_->open(path, operators, intra_op_threads); }));
  network = std::move(opened);
  return {};
}

Shape TensorNetwork::input_shape(const std::string& name) const {
  return Session::shape_in(session_->inputs, name);
}

Shape TensorNetwork::output_shape(const std::string& name) const {
  return Session::shape_in(session_->outputs, name);
}

std::size_t TensorNetwork::inputs() const { return session_->session.GetInputCount(); }

Status TensorNetwork::run(std::span<const Tensor> inputs, std::span<const Tensor> outputs,
                          const CancelToken& token) {
  return guarded_run(false, Code::kModel, token, [&]() -> Status {
    std::vector<const char*> input_names;
    std::vector<const char*> output_names;
    std::vector<Ort::Value> given;
    std::vector<Ort::Value> wanted;
    for (const Tensor& tensor : inputs) {
      input_names.push_back(tensor.name);
      given.push_back(session_->value(tensor));
    }
    for (const Tensor& tensor : outputs) {
      output_names.push_back(tensor.name);
      wanted.push_back(session_->value(tensor));
    }
    const Interruptible run(token);
    session_->session.Run(run.options, input_names.data(), given.data(), given.size(),
                          output_names.data(), wanted.data(), wanted.size());
    return {};
  });
}

}  // namespace cutout::ort
