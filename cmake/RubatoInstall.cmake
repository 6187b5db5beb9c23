# What `cmake --install` copies: headers, libraries, programs, and the package for find_package.
# Debian's folder for libraries of one architecture, where its CMake and pkg-config look below /usr/local, too.
if(EXISTS /etc/debian_version AND CMAKE_LIBRARY_ARCHITECTURE AND NOT DEFINED CMAKE_INSTALL_LIBDIR)
  set(CMAKE_INSTALL_LIBDIR "lib/${CMAKE_LIBRARY_ARCHITECTURE}" CACHE PATH "Libraries, below the prefix")
endif()
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
# For those who build with rubato; programs, the Python package and the documentation have components of their own.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/rubato")

# Two export sets, so that the modules without libtorch can be found without libtorch.
get_property(modules GLOBAL PROPERTY RUBATO_MODULES)
get_property(torch_modules GLOBAL PROPERTY RUBATO_TORCH_MODULES)
list(TRANSFORM modules PREPEND rubato_ OUTPUT_VARIABLE targets)
list(TRANSFORM torch_modules PREPEND rubato_ OUTPUT_VARIABLE torch_targets)
install(TARGETS ${targets} EXPORT rubatoTargets FILE_SET HEADERS)
# This target builds all that the component `development` installs, and nothing else.
add_custom_target(rubato_development DEPENDS ${targets} ${torch_targets})
install(EXPORT rubatoTargets NAMESPACE rubato:: DESTINATION "${package_dir}")
if(torch_modules)
  install(TARGETS rubato_libtorch ${torch_targets} EXPORT rubatoTorchTargets FILE_SET HEADERS)
  install(EXPORT rubatoTorchTargets NAMESPACE rubato:: DESTINATION "${package_dir}")
endif()

configure_package_config_file(
  "${CMAKE_CURRENT_LIST_DIR}/rubatoConfig.cmake.in" "${PROJECT_BINARY_DIR}/rubatoConfig.cmake"
  INSTALL_DESTINATION "${package_dir}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/rubatoConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/rubatoConfig.cmake" "${PROJECT_BINARY_DIR}/rubatoConfigVersion.cmake"
  DESTINATION "${package_dir}")

# For builds by other tools than CMake: `pkg-config rubato`, or `rubato-torch` with all modules. Modules name each other
# in any order, so that the linker has to look at all until it finds nothing new; pkgconf would take two such groups for
# one. The place of the installation is found from that of the file.
file(RELATIVE_PATH prefix_from_pkg_config "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" /)
function(rubato_pkg_config name)
  cmake_parse_arguments(arg "" "DESCRIPTION;REQUIRES;FLAGS;LIBRARIES" "MODULES" ${ARGN})
  set(libraries "")
  foreach(module IN LISTS arg_MODULES)
    get_target_property(type rubato_${module} TYPE)
    if(NOT type STREQUAL "INTERFACE_LIBRARY")
      string(APPEND libraries " -lrubato_${module}")
    endif()
  endforeach()
  configure_file("${CMAKE_CURRENT_FUNCTION_LIST_DIR}/rubato.pc.in" "${PROJECT_BINARY_DIR}/${name}.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/${name}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endfunction()
set(required_packages "fmt, libcrypto, libisal, libjpeg, libpng, libxxhash, protobuf, tbb, zlib")
rubato_pkg_config(rubato MODULES ${modules}
  DESCRIPTION "${PROJECT_DESCRIPTION}, without libtorch"
  REQUIRES "${required_packages}")
if(torch_modules)
  set(torch_flags ${TORCH_INCLUDE_DIRS})
  list(REMOVE_ITEM torch_flags ${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES})
  list(TRANSFORM torch_flags PREPEND "-isystem ")
  list(JOIN torch_flags " " torch_flags)
  cmake_path(GET TORCH_LIBRARY PARENT_PATH torch_library_dir)
  set(torch_gloo ${RUBATO_GLOO_LIBRARY})
  list(TRANSFORM torch_gloo PREPEND " -l")
  rubato_pkg_config(rubato-torch MODULES ${torch_modules} ${modules}
    DESCRIPTION "${PROJECT_DESCRIPTION}, with libtorch"
    REQUIRES "${required_packages}" FLAGS " ${torch_flags}"
    LIBRARIES " -L${torch_library_dir} -ltorch -ltorch_cpu -lc10 -ltbbmalloc_proxy${torch_gloo}")
endif()

# The command, and the part of it that loads libtorch, which the command finds from its own place.
if(TARGET rubato)
  install(TARGETS rubato COMPONENT programs)
  if(NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR)
    install(DIRECTORY "${PROJECT_BINARY_DIR}/share/bash-completion" TYPE DATA COMPONENT programs)
    # The manual is there once the target rubato_manual was built.
    install(DIRECTORY "${PROJECT_BINARY_DIR}/share/man" TYPE DATA COMPONENT programs OPTIONAL)
    # The shells of Debian look in one place for its packages and in another for the administrator's own; fish does not
    # look below /usr/local. The prefix is known when this is installed.
    install(CODE "
      set(share \"${PROJECT_BINARY_DIR}/share\")
      set(zsh \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/zsh/site-functions\")
      set(fish \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d\")
      if(CMAKE_INSTALL_PREFIX MATCHES \"/usr/?$\")
        set(zsh \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions\")
      elseif(CMAKE_INSTALL_PREFIX MATCHES \"^/usr/local/?$\")
        set(fish /etc/fish/completions)
      endif()
      file(INSTALL \"\${share}/zsh/site-functions/_rubato\" DESTINATION \"\${zsh}\")
      file(INSTALL \"\${share}/fish/vendor_completions.d/rubato.fish\" DESTINATION \"\${fish}\")" COMPONENT programs)
  endif()
endif()
if(TARGET rubato-train)
  install(TARGETS rubato-train DESTINATION "${CMAKE_INSTALL_LIBEXECDIR}/rubato" COMPONENT programs)
endif()

install(FILES README.md CHANGELOG.md DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT documentation)
install(DIRECTORY docs DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT documentation FILES_MATCHING
  PATTERN "*.md" PATTERN "*.json" PATTERN "*.png" PATTERN "*.svg" PATTERN site EXCLUDE)

if(RUBATO_TESTS)
  add_subdirectory(tests/package)
endif()
