# libweft_llvm.so: row programs to machine code (src/codegen/llvm). Opened by the program when something must be compiled,
# and never linked. Needs LLVM 19 for its C interface, and clang of the same version, which turns the prelude into
# bitcode; without them the library is left out, and what would be generated runs op by op.

# Both sides of the library are of one build when they were made from the same sources: what it is made of, and the types
# and the mathematics that it shares with the program.
file(GLOB shared CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/codegen/*.h ${CMAKE_SOURCE_DIR}/src/codegen/row_program.cpp
     ${CMAKE_SOURCE_DIR}/src/codegen/row_program_text.cpp
     ${CMAKE_SOURCE_DIR}/src/codegen/llvm/* ${CMAKE_SOURCE_DIR}/src/tensor/*.h ${CMAKE_SOURCE_DIR}/src/tensor/*.def
     ${CMAKE_CURRENT_LIST_FILE})  # which has the flags of the prelude
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${shared})
set(hashes "")
foreach(file IN LISTS shared)
  file(SHA256 ${file} hash)
  string(APPEND hashes ${hash})
endforeach()
string(SHA256 hash ${hashes})
set(WEFT_LLVM_ROOT /usr/lib/llvm-19 CACHE PATH "Where LLVM 19 is installed")
option(WEFT_LLVM "Build libweft_llvm.so where LLVM 19 is found" ON)
find_path(WEFT_LLVM_HEADERS llvm-c/Core.h PATHS ${WEFT_LLVM_ROOT}/include NO_DEFAULT_PATH NO_CACHE)
find_library(WEFT_LLVM_LIBRARY LLVM-19 PATHS ${WEFT_LLVM_ROOT}/lib NO_DEFAULT_PATH NO_CACHE)
find_program(WEFT_LLVM_CLANG clang PATHS ${WEFT_LLVM_ROOT}/bin NO_DEFAULT_PATH NO_CACHE)
set(builds_llvm false)
set(llvm_version none)
if(WEFT_LLVM AND WEFT_LLVM_HEADERS AND WEFT_LLVM_LIBRARY AND WEFT_LLVM_CLANG)
  set(builds_llvm true)
  file(STRINGS ${WEFT_LLVM_HEADERS}/llvm/Config/llvm-config.h llvm_version REGEX "define LLVM_VERSION_STRING")
  string(REGEX REPLACE ".*\"(.*)\".*" "\\1" llvm_version "${llvm_version}")
endif()
file(CONFIGURE OUTPUT ${WEFT_GENERATED}/codegen/llvm_interface.h CONTENT "#pragma once

// Made by the build from the sources that libweft_llvm.so and the program share.
namespace weft {
inline constexpr const char* kLlvmInterface = \"${hash}\";
// Whether this build made the library, and with which LLVM.
inline constexpr bool kBuildsLlvm = ${builds_llvm};
inline constexpr const char* kLlvmVersion = \"${llvm_version}\";
}
")

if(NOT builds_llvm)
  if(WEFT_LLVM)
    message(STATUS "LLVM 19 and clang 19 are not installed below ${WEFT_LLVM_ROOT}: no code is generated")
  endif()
  return()
endif()

# Built with AVX-512 so that clang makes whole vectors of its loops; what comes out is plain vector operations, which
# LLVM lays out for the machine at hand.
set(bitcode "")
set(assembly "")
foreach(lanes 4 8 16)
  set(file ${WEFT_GENERATED}/prelude_${lanes}.bc)
  add_custom_command(
    OUTPUT ${file}
    COMMAND
      ${WEFT_LLVM_CLANG} -std=c++20 -O3 -DWEFT_LANES=${lanes} -march=x86-64-v4 -mprefer-vector-width=512 -ffp-contract=off
      -fno-math-errno -fno-exceptions -fno-asynchronous-unwind-tables -Wall -Werror -I${CMAKE_SOURCE_DIR}/src -emit-llvm -c
      ${CMAKE_SOURCE_DIR}/src/codegen/llvm/prelude.cpp -o ${file} -MD -MF ${file}.d
    DEPENDS ${CMAKE_SOURCE_DIR}/src/codegen/llvm/prelude.cpp
    DEPFILE ${file}.d
    COMMENT "Prelude of generated code, ${lanes} lanes" VERBATIM)
  list(APPEND bitcode ${file})
  string(APPEND assembly "    \".globl weft_prelude_${lanes}, weft_prelude_${lanes}_end\\n\"\n"
         "    \".balign 16\\nweft_prelude_${lanes}: .incbin \\\"${file}\\\"\\nweft_prelude_${lanes}_end: .byte 0\\n\"\n")
endforeach()
file(CONFIGURE OUTPUT ${WEFT_GENERATED}/prelude_data.cpp CONTENT "// Made by the build: the prelude's bitcode.
asm(\".section .rodata\\n\"
${assembly}    \".text\\n\");
" @ONLY)
set_source_files_properties(${WEFT_GENERATED}/prelude_data.cpp PROPERTIES OBJECT_DEPENDS "${bitcode}")

weft_sources(llvm_sources IN src/codegen/llvm EXCEPT prelude.cpp)
add_library(weft_llvm SHARED ${llvm_sources} src/codegen/row_program.cpp src/codegen/row_program_text.cpp
            ${WEFT_GENERATED}/prelude_data.cpp)
target_include_directories(weft_llvm PRIVATE ${CMAKE_SOURCE_DIR}/src ${WEFT_GENERATED})
target_include_directories(weft_llvm SYSTEM PRIVATE ${WEFT_LLVM_HEADERS})
target_link_libraries(weft_llvm PRIVATE weft_tensor weft_base ${WEFT_LLVM_LIBRARY})
weft_runs_once(weft_llvm)
set_target_properties(weft_llvm PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
add_dependencies(weft_shared weft_llvm)  # opened when code is generated
install(TARGETS weft_llvm LIBRARY)
