// A program that begins as the README says: the right kernels, and oneTBB's malloc. Everything is
// linked, with libtorch.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <dlfcn.h>

#include <rubato/base/machine.hpp>
#include <rubato/libtorch/trainer.hpp>
#include <rubato/steps/plan.hpp>

namespace {

// Whether the malloc that this process gets is the proxy's.
bool has_fast_malloc() {
  Dl_info info{};
  return dladdr(dlsym(RTLD_DEFAULT, "malloc"), &info) != 0 &&
         std::string_view(info.dli_fname).find("tbbmalloc_proxy") != std::string_view::npos;
}

}  // namespace

int main(int argc, char** argv) {
  rubato::use_right_kernels(argv);
  const rubato::Trace trace = rubato::Trace::elastic();
  const rubato::KernelsInUse kernels = rubato::kernels_in_use();
  std::printf("%d arguments, trace %s, ATen %s, malloc %s\n", argc, trace.source().c_str(),
              kernels.aten.c_str(), has_fast_malloc() ? "oneTBB's" : "another");
  return has_fast_malloc() && !kernels.aten.empty() ? EXIT_SUCCESS : EXIT_FAILURE;
}
