// Attention is an operator of rubato's own, rubato::attention, and not one of libtorch's that is
// replaced: libtorch has none that takes queries, keys and values as one projection, and so none
// whose gradient could be written into that projection's. It goes through the dispatcher all the
// same, so that HalfStorage rounds its results and profilers see it. It has no kernel for autograd;
// the function attention_of() adds its node to the graph.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/jit/frontend/function_schema_parser.h>

#include "attention_kernels.hpp"
#include "base/machine/instruction_set.hpp"
#include "dispatch.hpp"

namespace rubato::operators {

namespace {

using MaybeTensor = c10::optional<at::Tensor>;
using Two = std::tuple<at::Tensor, at::Tensor>;

constexpr const char* kForward = "rubato::attention";
constexpr const char* kBackward = "rubato::attention_backward";

attention::Shape shape_of(const at::Tensor& projection, std::int64_t heads) {
  return {.samples = projection.size(0),
          .tokens = projection.size(1),
          .heads = heads,
          .features = projection.size(2) / (3 * heads)};
}

// True if rubato's kernels can compute it.
bool is_for_kernels(const at::Tensor& projection, std::int64_t heads, const at::Tensor& hidden) {
  return current().attention && is_dense_float(projection) && projection.dim() == 3 &&
         projection.is_contiguous() && heads > 0 && projection.size(2) % (3 * heads) == 0 &&
         (!hidden.defined() ||
          (hidden.is_cpu() && hidden.scalar_type() == at::kBool && hidden.is_contiguous() &&
           hidden.sizes() == at::IntArrayRef{projection.size(1), projection.size(1)}));
}

// The bits are the same with all that have FMA.
attention::Kernels kernels() {
  static const InstructionSet set = allowed_instruction_set();
  if (set == InstructionSet::avx512) return attention::avx512_kernels();
  return set == InstructionSet::avx2 ? attention::avx2_kernels() : attention::base_kernels();
}

// Returns the output and what backward needs.
Two forward(const at::Tensor& projection, std::int64_t heads, const MaybeTensor& hidden) {
  const attention::Shape shape = shape_of(projection, heads);
  const attention::Kernels chosen = kernels();
  at::Tensor output =
      at::empty({shape.samples, shape.tokens, heads * shape.features}, projection.options());
  at::Tensor weights = at::empty({chosen.weights(shape)}, projection.options());
  const at::Tensor scratch = at::empty({chosen.scratch(shape)}, projection.options());
  chosen.forward(
      shape, {.projection = floats(projection),
              .hidden = hidden.has_value() ? static_cast<const bool*>(hidden->data_ptr()) : nullptr,
              .output = mutable_floats(output),
              .weights = mutable_floats(weights),
              .scratch = mutable_floats(scratch)});
  return {std::move(output), std::move(weights)};
}

at::Tensor backward(const at::Tensor& gradient, const at::Tensor& projection,
                    const at::Tensor& weights, std::int64_t heads) {
  const attention::Shape shape = shape_of(projection, heads);
  const attention::Kernels chosen = kernels();
  const at::Tensor dense = gradient.contiguous();
  at::Tensor of_projection = at::empty_like(projection);
  const at::Tensor scratch = at::empty({chosen.scratch(shape)}, projection.options());
  chosen.backward(shape, {.gradient = floats(dense),
                          .projection = floats(projection),
                          .weights = floats(weights),
                          .projection_gradient = mutable_floats(of_projection),
                          .scratch = mutable_floats(scratch)});
  return of_projection;
}

template <class Signature>
auto operator_named(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

struct Attention : torch::autograd::Function<Attention> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& projection,
                            std::int64_t heads, const MaybeTensor& hidden) {
    static const auto op = operator_named<decltype(operators::forward)>(kForward);
    auto [output, weights] = op.call(projection, heads, hidden);
    context->save_for_backward({projection, weights});
    context->saved_data["heads"] = heads;
    return output;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    static const auto op = operator_named<decltype(operators::backward)>(kBackward);
    const auto saved = context->get_saved_variables();
    return {
        op.call(gradients[0], saved[0], saved[1], context->saved_data["heads"].toInt()), {}, {}};
  }
};

// Attention by libtorch's operators.
at::Tensor composed(const at::Tensor& projection, std::int64_t heads, const at::Tensor& hidden) {
  constexpr double kHidden = -std::numeric_limits<double>::infinity();
  const std::int64_t samples = projection.size(0);
  const std::int64_t tokens = projection.size(1);
  const std::int64_t dim = projection.size(2) / 3;
  const std::int64_t of_head = dim / heads;
  // [3, samples, heads, tokens, features of a head]
  const at::Tensor all =
      projection.view({samples, tokens, 3, heads, of_head}).permute({2, 0, 3, 1, 4});
  at::Tensor scores =
      at::matmul(all[0], all[1].transpose(-2, -1)) / std::sqrt(static_cast<double>(of_head));
  if (hidden.defined()) scores = scores.masked_fill(hidden, kHidden);
  const at::Tensor mixed = at::matmul(at::softmax(scores, -1), all[2]);
  return mixed.transpose(1, 2).reshape({samples, tokens, dim});
}

}  // namespace

void add_attention(Registrations& registrations) {
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  const auto add = [&](const char* name, const char* rest, c10::KernelFunction kernel) {
    // Another copy of this library may have defined it.
    if (dispatcher.findSchema({name, ""})) return;
    registrations.push_back(dispatcher.registerDef(
        torch::jit::parseSchema(std::string(name) + rest), "rubato's own operators"));
    registrations.push_back(dispatcher.registerImpl({name, ""}, c10::DispatchKey::CPU,
                                                    std::move(kernel), c10::nullopt, nullptr,
                                                    "rubato's own operators"));
  };
  add(kForward, "(Tensor projection, int heads, Tensor? hidden) -> (Tensor, Tensor)",
      c10::KernelFunction::makeFromUnboxedFunction(TORCH_FN(forward)));
  add(kBackward, "(Tensor gradient, Tensor projection, Tensor weights, int heads) -> Tensor",
      c10::KernelFunction::makeFromUnboxedFunction(TORCH_FN(backward)));
}

}  // namespace rubato::operators

namespace rubato {

at::Tensor attention_of(const at::Tensor& projection, std::int64_t heads,
                        const at::Tensor& hidden) {
  using namespace operators;
  if (!is_for_kernels(projection, heads, hidden)) return composed(projection, heads, hidden);
  return Attention::apply(projection, heads,
                          hidden.defined() ? MaybeTensor(hidden) : MaybeTensor());
}

}  // namespace rubato
