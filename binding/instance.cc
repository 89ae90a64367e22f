#include "instance.h"

namespace cutout::binding {

Instance::Instance(Napi::Env env) : completion_(env) {
  // Hooks run in reverse order: this one before that of the thread-safe function created above.
  env.AddCleanupHook([](Instance* self) { self->shut_down(); }, this);
}

void Instance::add(const std::shared_ptr<Running>& running) {
  std::erase_if(running_, [](const std::weak_ptr<Running>& entry) { return entry.expired(); });
  running_.push_back(running);
}

void Instance::shut_down() {
  for (const std::weak_ptr<Running>& entry : running_) {
    if (const std::shared_ptr<Running> running = entry.lock()) running->shut_down();
  }
  completion_.shut_down();
}

}  // namespace cutout::binding
