// low_precision_stress [rounds] [ONNX Runtime's library]: random programs in 8 bits and in bf16, in
// memory of exactly their size, with every kernel of this processor and with the loops for AMX on
// emulated tiles, alone and on threads, against the convolutions by definition; then the same
// programs damaged, and cancelled while they run. With the library also as the operators of ONNX
// files. Built for the sanitizers (CMakeLists.txt).
#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "core/cancel.h"
#include "core/thread_pool.h"
#include "low_precision/attention.h"
#include "low_precision/bf16.h"
#include "low_precision/matmul.h"
#include "low_precision/run.h"
#include "ort/network.h"
#include "ort/runtime.h"
#include "stress/emulated_tiles.h"
#include "stress/low_precision_programs.h"

using namespace cutout;

namespace {

using test::ProgramData;

std::mt19937 random_bits(1);
int round_number = 0;

int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_bits); }

void expect(bool good, const char* what, const char* of = "") {
  if (good) return;
  std::fprintf(stderr, "low_precision_stress: round %d: %s %s\n", round_number, what, of);
  std::_Exit(1);
}

std::vector<float> image(int width, int height) {
  std::vector<float> values(3 * static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
  for (float& value : values) value = static_cast<float>(pick(-128, 127)) / 256;
  return values;
}

/// The memory of a run, not one byte longer than the plan says.
class Memory {
 public:
  explicit Memory(std::size_t bytes)
      : data_(
            static_cast<std::uint8_t*>(std::aligned_alloc(low_precision::Plan::kAlignment, bytes)),
            &std::free),
        bytes_(bytes) {
    expect(data_ != nullptr, "no memory");
    std::memset(data_.get(), 0xff,
                bytes);  // what an earlier run left behind; NaN as bf16 and float
  }
  [[nodiscard]] std::span<std::uint8_t> span() const { return {data_.get(), bytes_}; }

 private:
  std::unique_ptr<std::uint8_t, void (*)(void*)> data_;
  std::size_t bytes_;
};

low_precision::Parallel parallel_on(ThreadPool& pool) {
  return [&pool](std::size_t count, const std::function<void(std::size_t)>& work) {
    pool.parallel_for(count, 1, [&work](std::size_t first, std::size_t last) {
      for (std::size_t part = first; part < last; ++part) work(part);
    });
  };
}

using Outputs = std::vector<std::vector<float>>;

/// The outputs of one run, each of exactly its size.
Outputs outputs_of(const low_precision::Program& program, const low_precision::Plan& plan) {
  Outputs outputs(static_cast<std::size_t>(program.outputs()));
  for (const low_precision::Operation& operation : program.operations()) {
    if (!operation.outward()) continue;
    const low_precision::Map map = plan.map(operation.inputs.front(), nullptr);
    outputs[static_cast<std::size_t>(operation.output)].resize(
        static_cast<std::size_t>(operation.output_channels(map.channels)) *
        static_cast<std::size_t>(map.width) * static_cast<std::size_t>(map.height));
  }
  return outputs;
}

Status run(const low_precision::Program& program, const low_precision::Plan& plan,
           const low_precision::Kernel& kernel, const std::vector<float>& input, ThreadPool& pool,
           const CancelToken* token, Outputs& outputs) {
  outputs = outputs_of(program, plan);
  const Memory memory(low_precision::bytes_of_run(program, plan, kernel));
  low_precision::RunBuffers buffers{input, {}, memory.span()};
  for (std::vector<float>& each : outputs) buffers.outputs.emplace_back(each);
  return low_precision::run(program, plan, kernel, buffers, parallel_on(pool), token);
}

/// Bit for bit.
bool same(const Outputs& a, const Outputs& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
  });
}

/// Instruction sets of this processor for one kind of programs.
const std::vector<std::string>& names_of(bool bf16) {
  return bf16 ? low_precision::kernels().bf16 : low_precision::kernels().int8;
}

/// The kernels for one kind of programs that run here, the definition last.
std::vector<std::pair<std::string, low_precision::Kernel>> kernels_of(bool bf16) {
  std::vector<std::pair<std::string, low_precision::Kernel>> found;
  for (const std::string& name : names_of(bf16)) {
    found.emplace_back(name, low_precision::kernel_for(name));
  }
#if defined(__x86_64__)
  const auto tiles = bf16 ? &test::conv_tiles_bf16 : &test::conv_tiles_int8;
  found.emplace_back("emulated tiles", low_precision::Kernel{tiles});
#endif
  found.emplace_back("the definition", low_precision::Kernel{&test::conv_scalar});
  return found;
}

void check_kernels(const ProgramData& data, int width, int height, ThreadPool& pool) {
  low_precision::Program program;
  expect(data.read(program).ok(), "a well-formed program is refused");
  low_precision::Plan plan;
  expect(low_precision::Plan::make(program, width, height, plan).ok(), "a program has no plan");
  const std::vector<float> input = image(width, height);
  ThreadPool alone(0);
  Outputs wanted;
  Outputs found;
  expect(run(program, plan, {&test::conv_scalar}, input, alone, nullptr, wanted).ok(),
         "a run fails");
  for (const std::vector<float>& each : wanted) {
    expect(std::ranges::all_of(each, [](float value) { return std::isfinite(value); }),
           "an output is not finite");
  }
  for (const auto& [name, kernel] : kernels_of(program.bf16())) {
    for (ThreadPool* const threads : {&alone, &pool}) {
      expect(run(program, plan, kernel, input, *threads, nullptr, found).ok(), "a run fails with",
             name.c_str());
      expect(same(found, wanted), "not what the definition gives:", name.c_str());
    }
  }
}

/// Whole numbers: every sum of products of a few of them is exact.
std::vector<float> whole_numbers(std::size_t count) {
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(pick(-8, 8));
  return values;
}

/// A product of random shape with every kernel against the convolution by definition.
void check_product(ThreadPool& pool) {
  const int inputs = pick(1, 100);
  const std::size_t rows =
      static_cast<std::size_t>(pick(0, 3) == 0 ? pick(1500, 1700) : pick(1, 60));
  std::vector<std::int64_t> columns(static_cast<std::size_t>(pick(1, 3)));
  std::size_t groups = 0;
  for (std::int64_t& each : columns) {
    each = pick(1, 70);
    groups += static_cast<std::size_t>(each + low_precision::kLanes - 1) / low_precision::kLanes;
  }
  const auto lanes = std::size_t{low_precision::kLanes};
  const bool bf16 = pick(0, 1) == 1;
  const int chunk = bf16 ? 32 : 64;
  const auto chunks = static_cast<std::size_t>((inputs + chunk - 1) / chunk);
  std::vector<std::int8_t> weights;
  for (const float value :
       whole_numbers(groups * chunks * static_cast<std::size_t>(chunk) * lanes)) {
    const low_precision::Bf16 bits = low_precision::bf16_of(value);
    weights.push_back(static_cast<std::int8_t>(bf16 ? bits & 255 : static_cast<int>(value)));
    if (bf16) weights.push_back(static_cast<std::int8_t>(bits >> 8U));
  }
  weights.shrink_to_fit();
  const std::vector<float> bias = whole_numbers(groups * lanes * (bf16 ? 1 : 3));
  const std::vector<float> input = whole_numbers(rows * static_cast<std::size_t>(inputs));
  low_precision::MatMul product;
  expect(low_precision::MatMul::make(bf16, inputs, columns, pick(0, 1) == 1, bias, weights, product)
             .ok(),
         "a product is refused");
  const auto outputs_with = [&](const low_precision::Kernel& kernel, ThreadPool& threads) {
    Outputs outputs;
    std::vector<float*> places;
    for (const std::int64_t each : columns) {
      places.push_back(outputs.emplace_back(rows * static_cast<std::size_t>(each)).data());
    }
    const Memory memory(product.bytes_of_run(rows));
    expect(
        product.run(kernel.run, input, rows, places, memory.span(), parallel_on(threads), nullptr)
            .ok(),
        "a product fails");
    return outputs;
  };
  ThreadPool alone(0);
  const Outputs wanted = outputs_with({&test::conv_scalar}, alone);
  for (const auto& [name, kernel] : kernels_of(bf16)) {
    for (ThreadPool* const threads : {&alone, &pool}) {
      expect(same(outputs_with(kernel, *threads), wanted), "another product by", name.c_str());
    }
  }
  weights.resize(weights.size() - 1);
  low_precision::MatMul none;
  expect(!low_precision::MatMul::make(bf16, inputs, columns, false, bias, weights, none).ok(),
         "a product without all of its weights is accepted");
}

/// An attention of random shape with every kernel; the sums of its exponentials may differ in
/// order.
void check_attention(ThreadPool& pool) {
  const low_precision::Attention attention{static_cast<std::size_t>(pick(1, 3)),
                                           pick(1, 60),
                                           pick(1, 70),
                                           pick(1, 3),
                                           pick(1, 40),
                                           pick(1, 40),
                                           0.05F};
  expect(attention.check().ok(), "an attention is refused");
  const auto count = [&](int rows, int channels) {
    return attention.batch * static_cast<std::size_t>(rows * attention.heads * channels);
  };
  const std::vector<float> queries = whole_numbers(count(attention.queries, attention.channels));
  const std::vector<float> keys = whole_numbers(count(attention.keys, attention.channels));
  const std::vector<float> values = whole_numbers(count(attention.keys, attention.value_channels));
  const auto output_with = [&](const low_precision::Kernel& kernel, ThreadPool& threads) {
    std::vector<float> output(count(attention.queries, attention.value_channels));
    const Memory memory(attention.bytes_of_run());
    expect(attention
               .run(kernel.run, {queries.data(), keys.data(), values.data()}, output.data(),
                    memory.span(), parallel_on(threads), nullptr)
               .ok(),
           "an attention fails");
    return output;
  };
  ThreadPool alone(0);
  const std::vector<float> wanted = output_with({&test::conv_scalar}, alone);
  for (const auto& [name, kernel] : kernels_of(true)) {
    for (ThreadPool* const threads : {&alone, &pool}) {
      const std::vector<float> found = output_with(kernel, *threads);
      const bool near = std::equal(found.begin(), found.end(), wanted.begin(), wanted.end(),
                                   [](float a, float b) { return std::abs(a - b) < 1e-4F; });
      expect(near, "another attention by", name.c_str());
    }
  }
}

low_precision::Kernel any_kernel(bool bf16) {
  const auto known = kernels_of(bf16);
  return known[static_cast<std::size_t>(pick(0, static_cast<int>(known.size()) - 1))].second;
}

ProgramData damaged(ProgramData data) {
  constexpr std::array<std::int64_t, 18> kOdd{
      -1, 0, 1, 2, 3, 4, 15, 16, 17, 63, 64, 65, 255, 256, 4096, 1 << 16, INT_MAX, INT64_MAX};
  for (int change = pick(0, 2); change >= 0; --change) {
    std::int64_t& number =
        data.code[static_cast<std::size_t>(pick(0, static_cast<int>(data.code.size()) - 1))];
    number = pick(0, 1) == 0 ? number + pick(-2, 2) : kOdd[static_cast<std::size_t>(pick(0, 17))];
  }
  switch (pick(0, 9)) {
    case 0:
      data.code.resize(static_cast<std::size_t>(pick(0, static_cast<int>(data.code.size()))));
      break;
    case 1:
      data.weights.resize(data.weights.size() / 2);
      break;
    case 2:
      data.ints.resize(data.ints.size() / 2);
      break;
    case 3:
      data.floats.resize(data.floats.size() / 2);
      break;
    case 4:
    case 5: {
      constexpr float kInfinity = std::numeric_limits<float>::infinity();
      constexpr std::array<float, 5> kEnds{NAN, kInfinity, -kInfinity, 0, 1e38F};
      std::ranges::fill(data.floats, kEnds[static_cast<std::size_t>(pick(0, 4))]);
      break;
    }
    default:
      break;
  }
  data.code.shrink_to_fit();
  data.weights.shrink_to_fit();
  data.ints.shrink_to_fit();
  data.floats.shrink_to_fit();
  return data;
}

/// Refused, or run inside its memory.
void check_damaged(const ProgramData& data, int width, int height, ThreadPool& pool) {
  constexpr std::size_t kMaxBytes = std::size_t{1} << 19;
  for (int i = 0; i < 10; ++i) {
    const ProgramData changed = damaged(data);
    low_precision::Program program;
    if (!changed.read(program).ok()) continue;
    low_precision::Plan plan;
    if (!low_precision::Plan::make(program, width, height, plan).ok()) continue;
    if (plan.bytes() > kMaxBytes || program.input_channels() > 64) continue;
    const std::vector<float> input(static_cast<std::size_t>(program.input_channels()) *
                                       static_cast<std::size_t>(width) *
                                       static_cast<std::size_t>(height),
                                   pick(0, 9) == 0 ? NAN : 0.25F);
    Outputs found;
    expect(run(program, plan, any_kernel(program.bf16()), input, pool, nullptr, found).ok(),
           "a run fails");
  }
}

/// Sizes of the input that no network has.
void check_sizes(const ProgramData& data) {
  low_precision::Program program;
  expect(data.read(program).ok(), "a well-formed program is refused");
  for (const int side : {INT_MIN, -1, 0, (1 << 16) + 1, INT_MAX}) {
    low_precision::Plan plan;
    expect(!low_precision::Plan::make(program, side, 8, plan).ok(),
           "a plan for an impossible width");
    expect(!low_precision::Plan::make(program, 8, side, plan).ok(),
           "a plan for an impossible height");
  }
}

/// A run ends with the reason for which it was stopped.
void check_cancelled(const ProgramData& data, ThreadPool& pool) {
  low_precision::Program program;
  expect(data.read(program).ok(), "a well-formed program is refused");
  low_precision::Plan plan;
  expect(low_precision::Plan::make(program, 60, 50, plan).ok(), "a program has no plan");
  const std::vector<float> input = image(60, 50);
  CancelToken token;
  if (pick(0, 3) == 0) token.stop(Code::kClosed);
  std::thread stopping([&token, wait = pick(0, 2000)] {
    std::this_thread::sleep_for(std::chrono::microseconds(wait));
    token.stop(Code::kCancelled);
  });
  Outputs found;
  const Status status = run(program, plan, any_kernel(program.bf16()), input, pool, &token, found);
  stopping.join();
  expect(status.ok() || status.code() == Code::kCancelled || status.code() == Code::kClosed,
         "a cancelled run ends with another reason");
}

/// Just enough of ONNX's protocol buffers.
class Message {
 public:
  void number(int field, std::uint64_t value) {
    varint(static_cast<std::uint64_t>(field) << 3);
    varint(value);
  }
  void text(int field, std::string_view value) {
    varint((static_cast<std::uint64_t>(field) << 3) | 2);
    varint(value.size());
    bytes_.append(value);
  }
  void message(int field, const Message& value) { text(field, value.bytes_); }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 128; value >>= 7) bytes_.push_back(static_cast<char>((value & 127) | 128));
    bytes_.push_back(static_cast<char>(value));
  }
  std::string bytes_;
};

template <typename T>
Message tensor(const std::string& name, int type, const std::vector<T>& values) {
  Message made;
  made.number(1, values.size());                     // dims
  made.number(2, static_cast<std::uint64_t>(type));  // data_type
  made.text(8, name);                                // name
  made.text(9,
            {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});  // raw_data
  return made;
}

/// float32 of rank 4; a dimension of 0 is free.
Message value_info(const std::string& name, std::array<int, 4> sides) {
  Message shape;
  for (const int side : sides) {
    Message dimension;
    if (side > 0) dimension.number(1, static_cast<std::uint64_t>(side));
    shape.message(1, dimension);
  }
  Message of_tensor;
  of_tensor.number(1, 1);
  of_tensor.message(2, shape);
  Message type;
  type.message(1, of_tensor);
  Message made;
  made.text(1, name);
  made.message(2, type);
  return made;
}

/// A network that is one operator, for every size.
void write_network(const ProgramData& data, bool bf16, const std::string& file) {
  Message node;
  for (const char* name : {"image", "code", "floats", "ints", "weights"}) node.text(1, name);
  for (const char* name : {"plane", "planes"}) node.text(2, name);
  node.text(4, bf16 ? "Bf16Network" : "IntegerNetwork");
  node.text(7, "cutout");
  Message graph;
  graph.message(1, node);
  graph.text(2, "low precision");
  graph.message(5, tensor("code", 7, data.code));
  graph.message(5, tensor("floats", 1, data.floats));
  graph.message(5, tensor("ints", 6, data.ints));
  graph.message(5, tensor("weights", 3, data.weights));
  graph.message(11, value_info("image", {1, 3, 0, 0}));
  graph.message(12, value_info("plane", {1, 1, 0, 0}));
  graph.message(12, value_info("planes", {1, 0, 0, 0}));
  Message model;
  model.number(1, 8);
  model.message(7, graph);
  for (const auto& [domain, version] : {std::pair{"", 17}, std::pair{"cutout", 1}}) {
    Message set;
    set.text(1, domain);
    set.number(2, static_cast<std::uint64_t>(version));
    model.message(8, set);
  }
  std::ofstream(file, std::ios::binary) << model.bytes();
}

// ThreadSanitizer does not see how the library's own threads, which it did not compile, wait for
// each other: there, runs are at the same time only where this program starts them.
#if defined(__SANITIZE_THREAD__)
constexpr int kIntraOpThreads = 1;
#else
constexpr int kIntraOpThreads = 3;
#endif

/// Two runs at the same time, of two sizes in turn, give what the program alone gives; a damaged
/// file is an error; a cancelled run ends with its reason.
void check_operator(const ProgramData& data, const std::string& file, int width, int height) {
  low_precision::Program program;
  expect(data.read(program).ok(), "a well-formed program is refused");
  const std::vector<std::string>& names = names_of(program.bf16());
  if (names.empty()) return;
  const std::string& name =
      names[static_cast<std::size_t>(pick(0, static_cast<int>(names.size()) - 1))];
  write_network(data, program.bf16(), file);
  ort::NetworkOptions options;
  options.path = file;
  options.operators = name;
  options.width = width;
  options.height = height;
  options.intra_op_threads = kIntraOpThreads;
  options.slots = 2;
  options.outputs = 2;
  std::unique_ptr<ort::Network> network;
  const CancelToken token;
  const Status opened = ort::Network::open(options, token, network);
  expect(opened.ok(), "an operator cannot be opened:", opened.message());
  ThreadPool alone(0);
  struct Sized {
    int width;
    int height;
    std::vector<float> input;
    Outputs wanted;
  };
  std::vector<Sized> sizes{{width, height, image(width, height), {}},
                           {width - 1, height - 2, image(width - 1, height - 2), {}}};
  for (Sized& each : sizes) {
    low_precision::Plan plan;
    expect(low_precision::Plan::make(program, each.width, each.height, plan).ok(), "no plan");
    expect(run(program, plan, {&test::conv_scalar}, each.input, alone, nullptr, each.wanted).ok(),
           "a run fails");
  }
  std::vector<std::thread> callers;
  for (int slot = 0; slot < 2; ++slot) {
    callers.emplace_back([&, slot] {
      for (std::size_t turn = 0; turn < 4; ++turn) {
        const Sized& sized = sizes[(turn + static_cast<std::size_t>(slot)) % 2];
        std::ranges::copy(sized.input, network->input(slot).begin());
        TensorView plane;
        expect(network->run(slot, sized.width, sized.height, token, plane).ok(), "a run fails");
        const std::span<const float> values = host_floats(plane);
        expect(same({{values.begin(), values.end()}}, {sized.wanted.front()}),
               "the operator gives something else");
      }
    });
  }
  for (std::thread& caller : callers) caller.join();

  CancelToken stopped;
  std::thread stopping([&stopped, wait = pick(0, 1000)] {
    std::this_thread::sleep_for(std::chrono::microseconds(wait));
    stopped.stop(Code::kClosed);
  });
  const Status status = network->run(0, stopped);
  stopping.join();
  expect(status.ok() || status.code() == Code::kClosed, "a cancelled run ends with another reason");

  for (int i = 0; i < 5; ++i) {
    const ProgramData changed = damaged(data);
    low_precision::Program readable;
    const bool good = changed.read(readable).ok();
    // One that can be read may need any amount of memory.
    if (good) continue;
    write_network(changed, program.bf16(), file);
    std::unique_ptr<ort::Network> none;
    const Status refused = ort::Network::open(options, token, none);
    expect(refused.code() == Code::kModel, "a damaged file is no error:", refused.message());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 40;
  const std::string library = argc > 2 ? argv[2] : "";
  if (!library.empty()) {
    const Status opened = ort::open_runtime(library);
    expect(opened.ok(), "the library cannot be opened:", opened.message());
  }
  std::string folder = (std::filesystem::temp_directory_path() / "integer-stress-XXXXXX").string();
  expect(mkdtemp(folder.data()) != nullptr, "no temporary folder");
  const std::string file = folder + "/network.onnx";
  ThreadPool pool(3);
  for (; round_number < rounds; ++round_number) {
    const int width = pick(4, 28);
    const int height = pick(4, 28);
    for (const ProgramData& data : {test::ProgramGenerator(random_bits).make(pick(2, 12)),
                                    test::Bf16ProgramGenerator(random_bits).make(pick(2, 12))}) {
      check_kernels(data, width, height, pool);
      check_damaged(data, width, height, pool);
      check_sizes(data);
      check_cancelled(data, pool);
      if (!library.empty() && round_number % 4 == 0) check_operator(data, file, width, height);
    }
    check_product(pool);
    check_attention(pool);
  }
  std::filesystem::remove_all(folder);
  std::string names;
  for (const bool bf16 : {false, true}) {
    for (const std::string& name : names_of(bf16)) names += " " + name;
  }
  std::printf("%d rounds with%s%s\n", rounds, names.empty() ? " no kernel" : names.c_str(),
              library.empty() ? ", without the operator" : "");
}
