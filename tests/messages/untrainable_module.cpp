// Not to be compiled: forward() takes something that no batch has.
#include <rubato/libtorch/module.hpp>

namespace rubato {

struct Untrainable : torch::nn::Module {
  at::Tensor forward(const at::Tensor& input, double scale) { return input * scale; }
};

ModelFactory factory_of_untrainable() {
  return model_factory<Untrainable>();
}

}  // namespace rubato
