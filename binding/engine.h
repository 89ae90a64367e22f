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
  using Method = Napi::Value (EngineObject::*)(const Napi::CallbackInfo& info);

  /// Memory that a job borrows.
  struct Range {
    const std::uint8_t* begin;
    const std::uint8_t* end;
    bool written;
  };

  /// Wraps a method that returns a promise: one that is rejected with ENGINE_OUT_OF_MEMORY where
  /// the method throws std::bad_alloc.
  template <Method kMethod>
  Napi::Value async(const Napi::CallbackInfo& info);

  /// Loads what `kRead` makes of the argument, by a function of the engine.
  template <typename Info, auto kRead, auto kLoad>
  Napi::Value load(const Napi::CallbackInfo& info);
  /// Starts a job by a function of the engine, of what `kRead` makes of the arguments behind the
  /// job's id.
  template <typename Result, auto kRead, auto kStart>
  Napi::Value job(const Napi::CallbackInfo& info);
  Napi::Value unload(const Napi::CallbackInfo& info);
  Napi::Value close(const Napi::CallbackInfo& info);
  Napi::Value cancel(const Napi::CallbackInfo& info);
  Napi::Value stats(const Napi::CallbackInfo& info);
  Napi::Value gpus(const Napi::CallbackInfo& info);

  /// Registers a job and the memory it borrows. Throws RangeError when its id is in use, or when it
  /// would write to memory of another job or read memory that another job writes to.
  void register_buffers(std::uint64_t id, const Borrowed& borrowed);

  /// The promise of the result that start(done) gives; `pinned` stays alive until it settles.
  template <typename Result, typename Start>
  Napi::Value run(const std::vector<Napi::Object>& pinned, std::function<void()> on_settle,
                  Start start);

  Completion& completion_;
  std::shared_ptr<EngineOwner> owner_;
  std::unordered_map<std::uint64_t, std::vector<Range>> jobs_;
};

}  // namespace cutout::binding
