#include "cairo_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <rubato/base/error.hpp>

namespace rubato::app {

namespace {

constexpr const char* kLibrary = "libcairo.so.2";

Cairo load() {
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  const auto find = [library](const char* name) {
    void* const function = library == nullptr ? nullptr : dlsym(library, name);
    if (function != nullptr) return function;
    throw Error(
        fmt::format("--out: pictures are drawn by {}, which cannot be loaded ({}); Debian has it "
                    "in the package "
                    "libcairo2, and without --out the plot is drawn in the terminal",
                    kLibrary, dlerror()));
  };
  Cairo cairo;
#define RUBATO_LOAD(name) cairo.name = reinterpret_cast<decltype(cairo.name)>(find("cairo_" #name));
  RUBATO_CAIRO_FUNCTIONS(RUBATO_LOAD)
#undef RUBATO_LOAD
  return cairo;
}

}  // namespace

const Cairo& cairo() {
  static const Cairo functions = load();
  return functions;
}

}  // namespace rubato::app
