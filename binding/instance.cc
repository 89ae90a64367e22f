#include "instance.h"

namespace cutout::binding {

Instance::Instance(Napi::Env env) : completion_(env) {
  // Hooks run in reverse order: this one before that of the thread-safe function created above.
  env.AddCleanupHook([](Instance* self) { self->shut_down(); }, this);
}

void Instance::add(const std::shared_ptr<EngineOwner>& owner) {
  std::erase_if(owners_, [](const std::weak_ptr<EngineOwner>& entry) { return entry.expired(); });
  owners_.push_back(owner);
}

void Instance::shut_down() {
  for (const std::weak_ptr<EngineOwner>& entry : owners_) {
    if (const std::shared_ptr<EngineOwner> owner = entry.lock()) owner->shut_down();
  }
  completion_.shut_down();
}

}  // namespace cutout::binding
