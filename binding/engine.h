#pragma once

#include <napi.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "arguments.h"
#include "instance.h"

namespace cutout::binding {

/// NativeEngine of src/engine/types.ts. JS thread only.
class EngineObject : public Napi::ObjectWrap<EngineObject> {
 public:
  static Napi::Function define(Napi::Env env);

  explicit EngineObject(const Napi::CallbackInfo& info);  // throws the error of Engine::create

 private:
  Napi::Value load(const Napi::CallbackInfo& info);                // [async]
  Napi::Value load_subject_types(const Napi::CallbackInfo& info);  // [async]
  Napi::Value unload(const Napi::CallbackInfo& info);              // [async]
  Napi::Value load_selector(const Napi::CallbackInfo& info);       // [async]
  Napi::Value embed(const Napi::CallbackInfo& info);               // [async]
  Napi::Value select(const Napi::CallbackInfo& info);              // [async]
  Napi::Value matte(const Napi::CallbackInfo& info);               // [async]
  Napi::Value compose(const Napi::CallbackInfo& info);             // [async]
  Napi::Value encode_png(const Napi::CallbackInfo& info);          // [async]
  Napi::Value cancel(const Napi::CallbackInfo& info);              // [sync]
  Napi::Value stats(const Napi::CallbackInfo& info);               // [sync]
  Napi::Value gpus(const Napi::CallbackInfo& info);                // [sync]
  Napi::Value close(const Napi::CallbackInfo& info);               // [async]

  /// Memory that a job borrows.
  struct Borrowed {
    const std::uint8_t* begin;
    const std::uint8_t* end;
    bool written;
  };
  struct BufferAccess {
    Napi::TypedArray data;
    bool written;
  };
  using Method = Napi::Value (EngineObject::*)(const Napi::CallbackInfo& info);
  /// Wraps an [async] method: returns a promise rejected with ENGINE_OUT_OF_MEMORY where the method
  /// throws std::bad_alloc.
  template <Method method>
  Napi::Value async(const Napi::CallbackInfo& info);

  /// Registers a job and the memory it borrows. Throws RangeError when its id is in use, or when it
  /// would write to memory of another job or read memory that another job writes to.
  void register_buffers(std::uint64_t id, const std::vector<BufferAccess>& uses,
                        std::vector<Napi::Object>& pinned);

  /// Starts a job: `start(done)` passes it to the engine, `make(env, Result&)` returns what its
  /// promise resolves with.
  template <typename Result, typename Start, typename Make>
  Napi::Value run(const std::vector<Napi::Object>& pinned, std::function<void()> on_settle,
                  Start start, Make make);

  /// The same for a job with an id that borrows pixels.
  template <typename Result, typename Start, typename Make>
  Napi::Value run(std::uint64_t id, const std::vector<BufferAccess>& uses, Start start, Make make);

  Completion& completion_;
  std::shared_ptr<EngineOwner> owner_;
  std::unordered_map<std::uint64_t, std::vector<Borrowed>> jobs_;
};

}  // namespace cutout::binding
