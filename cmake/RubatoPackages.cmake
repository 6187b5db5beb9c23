# `cpack` in a build folder makes Debian packages of what was built there: rubato, librubato-dev, rubato-doc, and
# python3-rubato where the Python package was built.

set(CPACK_GENERATOR DEB)
set(RUBATO_PACKAGE_CONTACT "The rubato developers <rubato@example.org>" CACHE STRING "Who maintains Debian packages")
set(CPACK_PACKAGE_CONTACT "${RUBATO_PACKAGE_CONTACT}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_COMPONENTS_ALL programs development documentation)
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_SOURCE_DIR}/cmake/debian/finish.cmake")
set(this_version "(= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")

# rubato_package(COMPONENT NAME [CONTENTS text] [SECTION name] [DEPENDS packages ...] [RECOMMENDS packages ...]): the package
# of a component.
macro(rubato_package component name)
  cmake_parse_arguments(arg "" "CONTENTS;SECTION" "DEPENDS;RECOMMENDS" ${ARGN})
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "rubato trains a model while the number of accelerator cores, and with it
the global batch size, changes underneath it: by a trace, with a choice of
learning-rate rules, and with the same bits on any number of threads.
.
This package has ${arg_CONTENTS}.")
  list(JOIN arg_DEPENDS ", " CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS)
  list(JOIN arg_RECOMMENDS ", " CPACK_DEBIAN_${upper}_PACKAGE_RECOMMENDS)
  if(arg_SECTION)
    set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${arg_SECTION})
  endif()
endmacro()

# The libraries that they load, by what they are linked with. libtorch is satisfied with the reference BLAS, which is ten
# times slower. `rubato report` alone needs D3, and `rubato plot` alone gnuplot.
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SHLIBDEPS ON)
rubato_package(programs rubato
  CONTENTS "the programs"
  DEPENDS libopenblas0-pthread
  RECOMMENDS gnuplot-nox libjs-d3)
rubato_package(development librubato-dev
  CONTENTS "headers, static libraries, and files for CMake and pkg-config" SECTION libdevel
  DEPENDS libfmt-dev libisal-dev libjpeg-dev libpng-dev libprotobuf-dev libssl-dev libtbb-dev libxxhash-dev
    nlohmann-json3-dev zlib1g-dev
  RECOMMENDS libtorch-dev libgloo-dev)
rubato_package(documentation rubato-doc
  CONTENTS "the guide and the decision records" SECTION doc)
set(CPACK_DEBIAN_DOCUMENTATION_PACKAGE_ARCHITECTURE all)
if(TARGET _rubato)
  list(APPEND CPACK_COMPONENTS_ALL python)
  # Extension modules are for one minor version of Python.
  math(EXPR next "${RUBATO_PYTHON_MINOR_VERSION} + 1")
  rubato_package(python python3-rubato
    CONTENTS "the Python package" SECTION python
    DEPENDS "rubato ${this_version}" "python3 (>= 3.${RUBATO_PYTHON_MINOR_VERSION})" "python3 (<< 3.${next})" python3-numpy
      python3-torch
    RECOMMENDS python3-pandas python3-matplotlib python3-hypothesis)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA
    "${PROJECT_SOURCE_DIR}/cmake/debian/postinst" "${PROJECT_SOURCE_DIR}/cmake/debian/prerm")
endif()
include(CPack)
