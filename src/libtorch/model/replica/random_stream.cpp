#include "random_stream.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include "base/core/check.hpp"
#include "base/core/mix.hpp"

namespace rubato {

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
