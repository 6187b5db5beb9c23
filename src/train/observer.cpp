#include <string>

#include <rubato/train/observer.hpp>

namespace rubato {

State observer_state(const State& trainer, std::string_view name) {
  return trainer.part("observer/" + std::string(name));
}

}  // namespace rubato
