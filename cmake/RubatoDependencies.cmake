# Everything the project uses from outside. All of it is in Debian 12; `bootstrap` installs it.

include(CheckCXXSourceCompiles)
find_package(Threads REQUIRED)
find_package(TBB REQUIRED COMPONENTS tbb tbbmalloc_proxy)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(ZLIB REQUIRED)
# Images in folders.
find_package(PNG REQUIRED)
find_package(JPEG REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(CURL 7.85 REQUIRED)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
# Boost.Math, of whose headers one file includes some.
find_package(Boost 1.74 REQUIRED NO_MODULE)
# The protocol buffers of TensorBoard's files. libtorch loads the same library into the same programs.
find_package(Protobuf 3.21 REQUIRED)
# ISA-L: unpacks gzip, and has CRC-32C, the checksum of TensorBoard's files.
find_path(RUBATO_ISAL_INCLUDE_DIR isa-l/crc.h REQUIRED)
# XXH3, the digests of steps. On x86-64 the library may have a version for the CPU's own vectors.
find_path(RUBATO_XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
set(CMAKE_REQUIRED_INCLUDES "${RUBATO_XXHASH_INCLUDE_DIR}")
set(CMAKE_REQUIRED_LIBRARIES xxhash)
check_cxx_source_compiles("
#include <xxh_x86dispatch.h>
int main() { return static_cast<int>(XXH3_128bits_dispatch(nullptr, 0).low64); }" RUBATO_XXHASH_DISPATCH)
unset(CMAKE_REQUIRED_INCLUDES)
unset(CMAKE_REQUIRED_LIBRARIES)
# Headers alone: the one file that includes them compiles the parser, so that sanitizers and the fuzzer
# see it.
find_path(RUBATO_TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h REQUIRED)
# D3, which draws the charts of `rubato report` (docs/adr/0064). It is read when a page is written, so that nothing but
# that needs it.
find_file(RUBATO_D3 d3.min.js PATHS /usr/share/javascript/d3 DOC "D3 3.5, as Debian's libjs-d3 has it")
if(NOT RUBATO_D3)
  set(RUBATO_D3 /usr/share/javascript/d3/d3.min.js)
endif()
if(RUBATO_TORCH)
  find_package(Torch REQUIRED)
  # Debian's libraries have the C++ ABI of today; some of PyTorch's own builds do not (docs/platforms.md).
  if(TORCH_CXX_FLAGS MATCHES "_GLIBCXX_USE_CXX11_ABI=0")
    message(FATAL_ERROR "${TORCH_INSTALL_PREFIX}: this libtorch has the C++ ABI from before GCC 5, which the libraries "
      "beside it have not; accepted: one with _GLIBCXX_USE_CXX11_ABI=1, such as pytorch.org's archive with cxx11-abi in "
      "its name")
  endif()
  # Where oneDNN is a part of libtorch, nobody else can ask it for its kernels.
  cmake_path(GET TORCH_LIBRARY PARENT_PATH torch_folder)
  execute_process(COMMAND "${CMAKE_READELF}" --dynamic "${torch_folder}/libtorch_cpu.so"
    OUTPUT_VARIABLE needed ERROR_QUIET)
  if(needed MATCHES "libdnnl")
    message(STATUS "libtorch ${Torch_VERSION}, with oneDNN as a library of its own")
  else()
    message(STATUS "libtorch ${Torch_VERSION}, with oneDNN inside: its kernels cannot be known, and --kernels portable is refused")
  endif()
  # libtorch's headers do not compile cleanly with the project's warnings: they are system headers,
  # and this target is the only way the project reaches them.
  add_library(rubato_libtorch INTERFACE)
  target_link_libraries(rubato_libtorch INTERFACE ${TORCH_LIBRARIES})
  # In C++20 Clang instantiates libtorch's std::vector<IValue> where IValue is still incomplete, unless
  # this header comes first.
  target_compile_options(rubato_libtorch INTERFACE
    "$<$<CXX_COMPILER_ID:Clang>:SHELL:-include ATen/core/ivalue.h>")
  add_library(rubato::libtorch ALIAS rubato_libtorch)
  set_target_properties(rubato_libtorch PROPERTIES EXPORT_NAME libtorch)
  # gloo, which libtorch is linked with: where it is not a part of it, it is a library of its own.
  find_path(RUBATO_GLOO_INCLUDE_DIR gloo/context.h REQUIRED)
  if(needed MATCHES "libgloo")
    set(RUBATO_GLOO_LIBRARY gloo)
  endif()
endif()
if(RUBATO_TESTS)
  find_package(GTest REQUIRED)
endif()
if(RUBATO_BENCH)
  find_package(benchmark REQUIRED)
endif()
