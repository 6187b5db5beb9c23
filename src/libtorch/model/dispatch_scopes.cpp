// Both scopes work in the same way. A thread includes an otherwise unused dispatch key; the
// dispatcher then calls the boxed kernel that is registered for this key, and the kernel excludes
// the key while it calls the operator's next kernel. For HalfStorage this exclusion makes a
// composite operator count as one: its inner operators are not rounded. Kernels are registered for
// the whole process at the first use and never removed. Kernels of random operators are registered
// one by one, for the operators that exist at that time; all others fall through.

#include "dispatch_scopes.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include "base/core/check.hpp"
#include "base/core/portable_math.hpp"

namespace rubato {

namespace {

constexpr auto kHalfKey = c10::DispatchKey::TESTING_ONLY_GenericWrapper;

float rounded(float value) {
  constexpr std::uint32_t kSign = 0x80000000U;
  constexpr std::uint32_t kInfinity = 0x7F800000U;
  // 2^16, to which 65520 and more round, and 2^-14, below which halves are multiples of 2^-24.
  constexpr std::uint32_t kTooLarge = 0x47800000U;
  constexpr std::uint32_t kSmallestNormal = 0x38800000U;
  constexpr std::uint32_t kDropped = 13;  // bits of the significand
  constexpr std::uint32_t kBelowHalf = (1U << (kDropped - 1)) - 1;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & ~kSign;
  const std::uint32_t odd = (magnitude >> kDropped) & 1U;
  std::uint32_t normal = (magnitude + kBelowHalf + odd) & ~((1U << kDropped) - 1);
  normal = normal >= kTooLarge ? kInfinity : normal;
  // Floats from 1/2 to 1 are multiples of 2^-24, so the addition rounds.
  const float tiny = (std::bit_cast<float>(magnitude) + 0.5F) - 0.5F;
  std::uint32_t result = magnitude < kSmallestNormal ? std::bit_cast<std::uint32_t>(tiny) : normal;
  result = magnitude >= kInfinity ? magnitude : result;
  return std::bit_cast<float>(result | (bits & kSign));
}

// Operators that CUDA's autocast computes in float32, with results in float32.
constexpr std::array<std::string_view, 37> kInFloat{"aten::binary_cross_entropy_with_logits",
                                                    "aten::cosine_embedding_loss",
                                                    "aten::cosine_similarity",
                                                    "aten::cross_entropy_loss",
                                                    "aten::cumprod",
                                                    "aten::cumsum",
                                                    "aten::dist",
                                                    "aten::exp",
                                                    "aten::expm1",
                                                    "aten::group_norm",
                                                    "aten::hinge_embedding_loss",
                                                    "aten::huber_loss",
                                                    "aten::kl_div",
                                                    "aten::l1_loss",
                                                    "aten::layer_norm",
                                                    "aten::log",
                                                    "aten::log10",
                                                    "aten::log1p",
                                                    "aten::log2",
                                                    "aten::log_softmax",
                                                    "aten::logsumexp",
                                                    "aten::margin_ranking_loss",
                                                    "aten::mse_loss",
                                                    "aten::multi_margin_loss",
                                                    "aten::nll_loss",
                                                    "aten::nll_loss2d",
                                                    "aten::nll_loss_nd",
                                                    "aten::norm",
                                                    "aten::pow",
                                                    "aten::prod",
                                                    "aten::reciprocal",
                                                    "aten::rsqrt",
                                                    "aten::smooth_l1_loss",
                                                    "aten::softmax",
                                                    "aten::softplus",
                                                    "aten::sum",
                                                    "aten::triplet_margin_loss"};

bool stays_in_float(const c10::OperatorHandle& op) {
  return std::binary_search(kInFloat.begin(), kInFloat.end(),
                            std::string_view(op.operator_name().name));
}

void round_value(const c10::IValue& value) {
  if (value.isTensor()) {
    round_to_half(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) round_to_half(tensor);
  }
}

// Kernel for any operator: runs it, and rounds its results except for views of its arguments.
void round_results(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  {
    const c10::impl::ExcludeDispatchKeyGuard next(kHalfKey);
    op.callBoxed(stack);
  }
  if (stays_in_float(op)) return;
  const auto& returns = op.schema().returns();
  const std::size_t first = stack->size() - returns.size();
  for (std::size_t i = 0; i < returns.size(); ++i) {
    const auto* const alias = returns[i].alias_info();
    if (alias == nullptr || alias->isWrite()) round_value((*stack)[first + i]);
  }
}

// The fallback is never unregistered: another thread may be in it.
void register_fallback_once() {
  static const auto* const handle =
      new c10::RegistrationHandleRAII(c10::Dispatcher::singleton().registerFallback(
          kHalfKey, c10::KernelFunction::makeFromBoxedFunction<&round_results>(),
          "rubato: results in half precision"));
  static_cast<void>(handle);
}

}  // namespace

void round_to_half(std::span<float> values) {
  for (float& value : values) value = rounded(value);
}

void round_to_half(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.scalar_type() != at::kFloat || !tensor.is_cpu() ||
      tensor.layout() != c10::Layout::Strided || tensor.numel() == 0) {
    return;
  }
  if (tensor.is_non_overlapping_and_dense()) {
    round_to_half(std::span<float>(static_cast<float*>(tensor.data_ptr()),
                                   static_cast<std::size_t>(tensor.numel())));
    return;
  }
  const c10::impl::ExcludeDispatchKeyGuard next(kHalfKey);
  const at::AutoDispatchBelowADInplaceOrView without_graph;
  const at::Tensor dense = tensor.contiguous();
  const at::Tensor copy = dense.is_same(tensor) ? tensor.clone() : dense;
  round_to_half(copy);
  tensor.copy_(copy);
}

HalfStorage::HalfStorage(bool on) {
  if (!on) return;
  register_fallback_once();
  guard_.emplace(kHalfKey);
}

namespace {

constexpr auto kRandomStreamKey = c10::DispatchKey::TESTING_ONLY_GenericMode;

// Generator of the innermost scope of this thread.
thread_local const at::Generator* current = nullptr;

bool is_optional_generator(const c10::Argument& argument) {
  const auto* const optional = argument.type()->castRaw<c10::OptionalType>();
  return optional != nullptr && optional->getElementType()->kind() == c10::TypeKind::GeneratorType;
}

// Kernel for any operator with a generator: fills in this thread's generator if none is given.
void draw_from_stream(const c10::OperatorHandle& op, c10::DispatchKeySet,
                      torch::jit::Stack* stack) {
  const auto& arguments = op.schema().arguments();
  const std::size_t first = stack->size() - arguments.size();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    c10::IValue& value = (*stack)[first + i];
    if (value.isNone() && is_optional_generator(arguments[i])) value = *current;
  }
  const c10::impl::ExcludeDispatchKeyGuard next(kRandomStreamKey);
  op.callBoxed(stack);
}

// The kernels are never unregistered: another thread may be in one.
std::vector<c10::RegistrationHandleRAII> register_kernels() {
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  std::vector<c10::RegistrationHandleRAII> handles;
  handles.push_back(dispatcher.registerFallback(kRandomStreamKey,
                                                c10::KernelFunction::makeFallthrough(),
                                                "rubato: operators that draw nothing"));
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findSchema(name);
    if (!op) continue;
    const auto& arguments = op->schema().arguments();
    if (std::none_of(arguments.begin(), arguments.end(), is_optional_generator)) continue;
    handles.push_back(dispatcher.registerImpl(
        name, kRandomStreamKey, c10::KernelFunction::makeFromBoxedFunction<&draw_from_stream>(),
        c10::nullopt, nullptr, "rubato: operators that draw"));
  }
  RUBATO_CHECK(handles.size() > 1, "libtorch has operators that draw random numbers");
  return handles;
}

void register_kernels_once() {
  static const auto* const handles =
      new std::vector<c10::RegistrationHandleRAII>(register_kernels());
  static_cast<void>(handles);
}

}  // namespace

RandomStream::RandomStream() : generator_(at::make_generator<at::CPUGeneratorImpl>(0)) {
  register_kernels_once();
}

RandomStream::Scope RandomStream::begin(const StreamKey& key) {
  // The seed also clears the second number of a normal distribution's pair.
  generator_.set_current_seed(seed_of(key.seed, {key.epoch, key.step, key.minibatch}));
  return Scope(generator_);
}

RandomStream::Scope::Scope(const at::Generator& generator)
    : before_(current), guard_(kRandomStreamKey) {
  current = &generator;
}

RandomStream::Scope::~Scope() {
  current = before_;
}

}  // namespace rubato
