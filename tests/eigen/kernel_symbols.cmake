# cmake -DNM=program -DOBJECTS=files -P kernel_symbols.cmake
#
# The object files of the kernels for one instruction set define nothing that the linker could take
# from them for the rest of the program: inline functions only of an Eigen with a name of its own.
# Nor do they run anything when a program starts, on whatever CPU; those of the base set may, which every CPU has
# (Eigen has constants for NEON).
set(found 0)
foreach(object IN LISTS OBJECTS)
  if(NOT object MATCHES "dense_kernels_")
    continue()
  endif()
  math(EXPR found "${found} + 1")
  execute_process(COMMAND "${NM}" --demangle --defined-only "${object}"
    OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]+" symbols "${symbols}")
  foreach(symbol IN LISTS symbols)
    if((symbol MATCHES " [WVu] " AND NOT symbol MATCHES "rubato_eigen_|DW\\.ref\\.")
       OR (symbol MATCHES "_GLOBAL__sub_I|global_var_init" AND NOT object MATCHES "_base"))
      message(SEND_ERROR "${object} defines${symbol}")
    endif()
  endforeach()
endforeach()
if(NOT found EQUAL 3)
  message(SEND_ERROR "${found} files of kernels among ${OBJECTS}")
endif()
