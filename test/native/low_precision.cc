#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "core/cpu.h"
#include "core/thread_pool.h"
#include "emulated_tiles.h"
#include "images.h"
#include "low_precision/attention.h"
#include "low_precision/convolution.h"
#include "low_precision/kernels.h"
#include "low_precision/matmul.h"
#include "low_precision/run.h"
#include "low_precision/self_check.h"
#include "registry.h"

namespace cutout::test {

namespace {

/// Memory between two inaccessible pages; its bytes end where the second one begins.
class GuardedBytes {
 public:
  explicit GuardedBytes(std::size_t bytes, std::size_t alignment = 64)
      : bytes_((bytes + alignment - 1) / alignment * alignment),
        page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))),
        length_((bytes_ + page_ - 1) / page_ * page_ + 2 * page_) {
    void* const mapped =
        mmap(nullptr, length_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    start_ = static_cast<std::uint8_t*>(mapped);
    if (mprotect(start_ + page_, length_ - 2 * page_, PROT_READ | PROT_WRITE) != 0) {
      munmap(start_, length_);
      throw std::bad_alloc();
    }
  }
  ~GuardedBytes() { munmap(start_, length_); }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;

  [[nodiscard]] std::uint8_t* data() const { return start_ + length_ - page_ - bytes_; }

 private:
  std::size_t bytes_;
  std::size_t page_;
  std::size_t length_;
  std::uint8_t* start_ = nullptr;
};

/// The elements of a typed array in memory that ends at an inaccessible page.
template <typename T>
class GuardedCopy {
 public:
  explicit GuardedCopy(const Napi::Value& value)
      : count_(value.As<Napi::TypedArray>().ElementLength()),
        bytes_(std::max(count_ * sizeof(T), sizeof(T)), sizeof(T)) {
    const auto array = value.As<Napi::TypedArray>();
    const auto* const from =
        static_cast<const std::uint8_t*>(array.ArrayBuffer().Data()) + array.ByteOffset();
    if (count_ > 0) std::memcpy(bytes_.data(), from, count_ * sizeof(T));
  }
  [[nodiscard]] std::span<const T> span() const {
    return {reinterpret_cast<const T*>(bytes_.data()), count_};
  }

 private:
  std::size_t count_;
  GuardedBytes bytes_;
};

void check(Napi::Env env, const Status& status) {
  if (!status.ok()) throw Napi::Error::New(env, status.message());
}

struct GivenProgram {
  explicit GivenProgram(const Napi::Value& value) : GivenProgram(value.As<Napi::Object>()) {}
  explicit GivenProgram(const Napi::Object& given)
      : code(given.Get("code")),
        floats(given.Get("floats")),
        ints(given.Get("ints")),
        weights(given.Get("weights")) {
    check(given.Env(), low_precision::Program::read(code.span(), floats.span(), ints.span(),
                                                    weights.span(), program));
  }

  const GuardedCopy<std::int64_t> code;
  const GuardedCopy<float> floats;
  const GuardedCopy<std::int32_t> ints;
  const GuardedCopy<std::int8_t> weights;
  low_precision::Program program;
};

/// planBytes(program, width, height): the memory of a run.
Napi::Value plan_bytes_js(const Napi::CallbackInfo& info) {
  const GivenProgram given(info[0]);
  low_precision::Plan plan;
  check(info.Env(), low_precision::Plan::make(given.program, info[1].ToNumber().Int32Value(),
                                              info[2].ToNumber().Int32Value(), plan));
  return Napi::Number::New(info.Env(), static_cast<double>(plan.bytes()));
}

/// Kernels for AMX with tiles of arrays instead of registers, by name.
const std::map<std::string, low_precision::Kernel>& emulated() {
  static const std::map<std::string, low_precision::Kernel> known = [] {
    std::map<std::string, low_precision::Kernel> found;
    const std::vector<std::string> sets = instruction_sets();
    const auto has = [&sets](const char* set) {
      return std::ranges::find(sets, set) != sets.end();
    };
#if defined(__x86_64__)
    if (has("avx512")) found["emulated amx_int8"] = low_precision::conv_emulated_amx();
    if (has("avx512_bf16")) found["emulated amx_bf16"] = low_precision::conv_emulated_amx_bf16();
#endif
    return found;
  }();
  return known;
}

low_precision::Kernel kernel_named(Napi::Env env, const std::string& name) {
  if (const auto found = emulated().find(name); found != emulated().end()) return found->second;
  for (const auto& known : {low_precision::kernels().int8, low_precision::kernels().bf16}) {
    if (std::ranges::find(known, name) != known.end()) return low_precision::kernel_for(name);
  }
  throw Napi::RangeError::New(env, "no such kernel");
}

low_precision::Parallel parallel_on(ThreadPool& pool) {
  return [&pool](std::size_t count, const std::function<void(std::size_t)>& work) {
    pool.parallel_for(count, 1, [&work](std::size_t first, std::size_t last) {
      for (std::size_t part = first; part < last; ++part) work(part);
    });
  };
}

/// runProgram(program, input, width, height, kernel, threads): the planes of each output.
Napi::Value run_program_js(const Napi::CallbackInfo& info) {
  const GivenProgram given(info[0]);
  const low_precision::Program& program = given.program;
  const int width = info[2].ToNumber().Int32Value();
  const int height = info[3].ToNumber().Int32Value();
  low_precision::Plan plan;
  check(info.Env(), low_precision::Plan::make(program, width, height, plan));
  constexpr std::size_t kMaxBytes = std::size_t{1} << 30;
  const low_precision::Kernel kernel = kernel_named(info.Env(), info[4].ToString().Utf8Value());
  const std::size_t bytes = low_precision::bytes_of_run(program, plan, kernel);
  if (bytes > kMaxBytes) throw Napi::Error::New(info.Env(), "too large for this test");
  if (kernel.bf16 != program.bf16()) throw Napi::RangeError::New(info.Env(), "of other numbers");
  const GuardedCopy<float> input(info[1]);
  const std::size_t pixels = static_cast<std::size_t>(program.input_channels()) *
                             static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
  if (input.span().size() != pixels) throw Napi::RangeError::New(info.Env(), "size of the input");

  std::vector<std::vector<float>> values(static_cast<std::size_t>(program.outputs()));
  for (const low_precision::Operation& operation : program.operations()) {
    if (!operation.outward()) continue;
    const low_precision::Map map = plan.map(operation.inputs.front(), nullptr);
    const int channels = operation.output_channels(map.channels);
    values[static_cast<std::size_t>(operation.output)].resize(static_cast<std::size_t>(channels) *
                                                              static_cast<std::size_t>(map.width) *
                                                              static_cast<std::size_t>(map.height));
  }
  const GuardedBytes memory(bytes, low_precision::Plan::kAlignment);
  // What an earlier run left behind: NaN as bf16 and as float.
  std::memset(memory.data(), 0xff, bytes);
  low_precision::RunBuffers buffers{input.span(), {}, {memory.data(), bytes}};
  for (std::vector<float>& each : values) buffers.outputs.emplace_back(each);
  ThreadPool pool(info[5].ToNumber().Int32Value());
  const low_precision::Parallel parallel = parallel_on(pool);
  check(info.Env(), low_precision::run(program, plan, kernel, buffers, parallel, nullptr));
  Napi::Array results = Napi::Array::New(info.Env());
  for (const std::vector<float>& each : values) {
    results.Set(results.Length(), from_floats(info.Env(), each));
  }
  return results;
}

std::vector<std::int64_t> integers_of(const Napi::Value& value) {
  const auto list = value.As<Napi::Array>();
  std::vector<std::int64_t> integers;
  for (std::uint32_t i = 0; i < list.Length(); ++i) {
    integers.push_back(list.Get(i).ToNumber().Int64Value());
  }
  return integers;
}

/// Memory of a run, with NaN as bf16 and as float in it.
std::span<std::uint8_t> stale(const GuardedBytes& memory, std::size_t bytes) {
  std::memset(memory.data(), 0xff, bytes);
  return {memory.data(), bytes};
}

/// runMatMul({bf16, inputs, columns, gelu, constants, weights}, rows, kernel, threads, stopped):
/// the rows of each output.
Napi::Value run_matmul_js(const Napi::CallbackInfo& info) {
  const auto given = info[0].As<Napi::Object>();
  const std::vector<std::int64_t> columns = integers_of(given.Get("columns"));
  const GuardedCopy<float> constants(given.Get("constants"));
  const GuardedCopy<std::int8_t> weights(given.Get("weights"));
  low_precision::MatMul product;
  check(info.Env(), low_precision::MatMul::make(given.Get("bf16").ToBoolean(),
                                                given.Get("inputs").ToNumber().Int64Value(),
                                                columns, given.Get("gelu").ToBoolean(),
                                                constants.span(), weights.span(), product));
  const GuardedCopy<float> input(info[1]);
  const std::size_t rows = input.span().size() / static_cast<std::size_t>(product.inputs());
  std::vector<std::vector<float>> values;
  std::vector<float*> outputs;
  for (const low_precision::Matrix& each : product.matrices()) {
    outputs.push_back(values.emplace_back(rows * static_cast<std::size_t>(each.columns())).data());
  }
  const std::size_t bytes = product.bytes_of_run(rows);
  const GuardedBytes memory(bytes, low_precision::Plan::kAlignment);
  ThreadPool pool(info[3].ToNumber().Int32Value());
  CancelToken token;
  if (info[4].ToBoolean()) token.stop(Code::kCancelled);
  check(info.Env(),
        product.run(kernel_named(info.Env(), info[2].ToString().Utf8Value()).run, input.span(),
                    rows, outputs, stale(memory, bytes), parallel_on(pool), &token));
  Napi::Array results = Napi::Array::New(info.Env());
  for (const std::vector<float>& each : values) {
    results.Set(results.Length(), from_floats(info.Env(), each));
  }
  return results;
}

/// runAttention([batch, queries, keys, heads, channels, value channels], scale, queries, keys,
/// values, kernel, threads): its output.
Napi::Value run_attention_js(const Napi::CallbackInfo& info) {
  const std::vector<std::int64_t> sides = integers_of(info[0]);
  const auto side = [&sides](std::size_t at) { return static_cast<int>(sides.at(at)); };
  const low_precision::Attention attention{
      static_cast<std::size_t>(sides.at(0)), side(1), side(2), side(3), side(4), side(5),
      info[1].ToNumber().FloatValue()};
  check(info.Env(), attention.check());
  const GuardedCopy<float> queries(info[2]);
  const GuardedCopy<float> keys(info[3]);
  const GuardedCopy<float> values(info[4]);
  const std::size_t bytes = attention.bytes_of_run();
  const GuardedBytes memory(bytes, low_precision::Plan::kAlignment);
  std::vector<float> output(attention.batch *
                            static_cast<std::size_t>(side(1) * side(3) * side(5)));
  ThreadPool pool(info[6].ToNumber().Int32Value());
  check(info.Env(), attention.run(kernel_named(info.Env(), info[5].ToString().Utf8Value()).run,
                                  {queries.span().data(), keys.span().data(), values.span().data()},
                                  output.data(), stale(memory, bytes), parallel_on(pool), nullptr));
  return from_floats(info.Env(), output);
}

/// runConvolution({bf16, channels, outputs, kernel, stride, dilation, pads, relu, constants,
/// weights}, height, width, input, offsets, masks, kernel, threads): its output; a plain one
/// without offsets.
Napi::Value run_convolution_js(const Napi::CallbackInfo& info) {
  const auto given = info[0].As<Napi::Object>();
  const auto number = [&given](const char* name) {
    return given.Get(name).ToNumber().Int64Value();
  };
  const GuardedCopy<float> constants(given.Get("constants"));
  const GuardedCopy<std::int8_t> weights(given.Get("weights"));
  low_precision::Convolution::Geometry geometry;
  geometry.channels = number("channels");
  geometry.outputs = number("outputs");
  std::ranges::copy(integers_of(given.Get("kernel")), geometry.kernel.begin());
  geometry.stride = number("stride");
  geometry.dilation = number("dilation");
  std::ranges::copy(integers_of(given.Get("pads")), geometry.pads.begin());
  geometry.relu = given.Get("relu").ToBoolean();
  geometry.deformable = !info[4].IsUndefined();
  low_precision::Convolution convolution;
  check(info.Env(),
        low_precision::Convolution::make(given.Get("bf16").ToBoolean(), geometry, constants.span(),
                                         weights.span(), convolution));
  const int height = info[1].ToNumber().Int32Value();
  const int width = info[2].ToNumber().Int32Value();
  const GuardedCopy<float> input(info[3]);
  const Napi::Value none = Napi::Float32Array::New(info.Env(), 0);
  const GuardedCopy<float> offsets(geometry.deformable ? info[4] : none);
  const GuardedCopy<float> masks(geometry.deformable ? info[5] : none);
  const auto [rows, columns] = geometry.output_size(height, width);
  std::vector<float> output(static_cast<std::size_t>(geometry.outputs * rows * columns));
  const std::size_t bytes = convolution.bytes_of_run(height, width);
  const GuardedBytes memory(bytes, low_precision::Plan::kAlignment);
  ThreadPool pool(info[7].ToNumber().Int32Value());
  check(info.Env(), convolution.run(kernel_named(info.Env(), info[6].ToString().Utf8Value()).run,
                                    {input.span().data(), offsets.span().data(),
                                     masks.span().data(), output.data(), height, width},
                                    stale(memory, bytes), parallel_on(pool), nullptr));
  return from_floats(info.Env(), output);
}

/// programKernels(bf16): the kernels that runProgram accepts here for programs in bf16, or in 8
/// bits, the processor's own first.
Napi::Value kernels_js(const Napi::CallbackInfo& info) {
  const bool bf16 = info[0].ToBoolean().Value();
  Napi::Array names = Napi::Array::New(info.Env());
  const low_precision::Kernels& kernels = low_precision::kernels();
  for (const std::string& name : bf16 ? kernels.bf16 : kernels.int8) {
    names.Set(names.Length(), name);
  }
  for (const auto& [name, kernel] : emulated()) {
    if (kernel.bf16 == bf16) names.Set(names.Length(), name);
  }
  return names;
}

/// Leaves out the last channel group of a part, as a kernel that does not work.
void conv_incomplete(const low_precision::ConvTask& task, int first_row, int last_row,
                     int first_group, int last_group) {
  emulated().at("emulated amx_bf16").run(task, first_row, last_row, first_group, last_group - 1);
}

/// passesSelfCheck(kernel): whether it would be used; "incomplete" is a kernel that does not work.
Napi::Value passes_self_check_js(const Napi::CallbackInfo& info) {
  const std::string name = info[0].ToString().Utf8Value();
  const low_precision::ConvKernel kernel =
      name == "incomplete" ? &conv_incomplete : kernel_named(info.Env(), name).run;
  return Napi::Boolean::New(info.Env(), low_precision::multiplies_bf16(kernel));
}

CUTOUT_TEST_MODULE([](Napi::Env env, Napi::Object exports) {
  exports.Set("planBytes", Napi::Function::New(env, plan_bytes_js));
  exports.Set("runMatMul", Napi::Function::New(env, run_matmul_js));
  exports.Set("runConvolution", Napi::Function::New(env, run_convolution_js));
  exports.Set("runAttention", Napi::Function::New(env, run_attention_js));
  exports.Set("runProgram", Napi::Function::New(env, run_program_js));
  exports.Set("programKernels", Napi::Function::New(env, kernels_js));
  exports.Set("passesSelfCheck", Napi::Function::New(env, passes_self_check_js));
});

}  // namespace

}  // namespace cutout::test
