# Passes where COMPILER refuses SOURCE in at most MOST_LINES lines that name NAMES.
list(TRANSFORM INCLUDE_DIRECTORIES PREPEND -I)
# Without warnings, which libtorch's headers have and which are not the subject.
execute_process(
  COMMAND "${COMPILER}" -std=c++20 -fsyntax-only -w ${INCLUDE_DIRECTORIES} "${SOURCE}"
  RESULT_VARIABLE status OUTPUT_VARIABLE message ERROR_VARIABLE message)
message("${message}")
if(status EQUAL 0)
  message(FATAL_ERROR "${SOURCE} compiles, and must not")
endif()
if(NOT message MATCHES "${NAMES}")
  message(FATAL_ERROR "the message does not name ${NAMES}")
endif()
string(REGEX MATCHALL "\n" ends "${message}")
list(LENGTH ends lines)
message("the message has ${lines} lines")
if(lines GREATER MOST_LINES)
  message(FATAL_ERROR "the message has ${lines} lines; accepted: at most ${MOST_LINES}")
endif()
