# How every file is compiled. One compiler, g++, for all builds, the fuzz targets included: what is tested is what
# ships, and Debian 12's clang lacks std::source_location.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(WEFT_GENERATED ${CMAKE_BINARY_DIR}/generated)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2")
set(WEFT_TEST_OPTIONS $<$<CONFIG:Release>:-Og>)
set(CMAKE_CXX_FLAGS_DEBUG "-Og -g")
# -Og: -O1 takes a third longer to compile.
set(CMAKE_CXX_FLAGS_SANITIZE "-Og -g1 -fno-omit-frame-pointer")

# What runs once in a command's life or writes a report: -O2 makes it no faster that anybody could notice, and takes a
# quarter longer to compile, JSON most of all.
function(weft_runs_once target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

find_program(WEFT_CCACHE ccache)
if(WEFT_CCACHE)
  # A clone in another folder finds what this one compiled: paths below the source root are hashed as relative ones, and
  # the working directory is not hashed. Messages keep absolute paths. The sloppiness is what precompiled headers need.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_ABSSTDERR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros ${WEFT_CCACHE})
  add_compile_options(-fpch-preprocess)
endif()

# __FILE__, std::source_location and debug information name a file from the source root, so that an object does not
# depend on the folder of the clone. ccache gives the compiler paths relative to the build folder, the second map.
file(RELATIVE_PATH up ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR})
add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}/= -ffile-prefix-map=${up}=)

# x86-64-v2 is the oldest machine served; newer instructions come in only through the variant folders of kernels/cpu.
# Contraction off: a multiply and an add must round twice everywhere, or bits would depend on the variant chosen.
add_compile_options(-march=x86-64-v2 -ffp-contract=off)
# The compiler looks for memory to use again only above this many KiB: a tenth of its time, for 150 MB more a job.
add_compile_options(--param=ggc-min-heapsize=400000)
# -Wno-missing-field-initializers: to leave out members that keep their default is what designated initializers are for.
add_compile_options(-Wall -Wextra -Wno-missing-field-initializers -Wno-psabi)
# g++ 12 sees overflows in std::string that are none (GCC bug 105651); the address sanitizer sees the real ones.
add_compile_options(-Wno-stringop-overflow -Wno-stringop-overread -Wno-restrict -Wno-array-bounds)
add_link_options(-Wl,--as-needed -Wl,--build-id=sha1)
# One set of objects for the programs and for libweft.so. Hidden: calls within it stay direct, and what it exports is
# what src/capi/weft.h marks.
add_compile_options(-fPIC -fvisibility=hidden)

# Not under sanitizers: g++ then warns of uninitialized values that are not.
set(in_ci OFF)
if("$ENV{CI}")
  set(in_ci ON)
endif()
option(WEFT_WARNINGS_ARE_ERRORS "Fail on a warning (the default where CI is set)" ${in_ci})
if(WEFT_WARNINGS_ARE_ERRORS AND NOT WEFT_SANITIZE)
  # g++ 12 takes the unused alternatives of a moved std::variant for uninitialized values: shown, but no error.
  add_compile_options(-Werror -Wno-error=maybe-uninitialized)
endif()

if(WEFT_SANITIZE STREQUAL "address")
  # The address sanitizer stops at null and after the end of an object, too, and those checks are a tenth of the time
  # that compiling takes. The same for tests as for what is tested: of an inline function a program has one copy.
  add_compile_options(-fsanitize=address,undefined -fno-sanitize=null,object-size -fno-sanitize-recover=all)
  add_compile_options(-Wno-maybe-uninitialized)
  # Test programs of 180 MB instead of 300: tables of the sanitizer have an address in most words, and all lines have
  # debug information.
  add_link_options(-fsanitize=address,undefined -Wl,-z,pack-relative-relocs -Wl,--compress-debug-sections=zlib)
elseif(WEFT_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -Wno-tsan -Wno-maybe-uninitialized)
  add_link_options(-fsanitize=thread)
elseif(WEFT_SANITIZE)
  message(FATAL_ERROR "[WEFT_SANITIZE] wanted address, thread or nothing, but is ${WEFT_SANITIZE}")
endif()

if(WEFT_FUZZ)
  add_compile_options(-fsanitize-coverage=trace-pc,trace-cmp)
endif()

# What a source of src/kernels/cpu/<folder>/ may use beyond the baseline.
set(WEFT_VARIANT_avx2 -mavx2 -mfma -mf16c)
set(WEFT_VARIANT_avx512 ${WEFT_VARIANT_avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl)
set(WEFT_VARIANT_avx512_vnni ${WEFT_VARIANT_avx512} -mavx512vnni)
set(WEFT_VARIANT_avx512_bf16 ${WEFT_VARIANT_avx512} -mavx512bf16)
# Tiles are used by assembler instructions, which need no option.
set(WEFT_VARIANT_amx ${WEFT_VARIANT_avx512_bf16})
set(WEFT_VARIANTS avx2 avx512 avx512_vnni avx512_bf16 amx)

function(weft_instruction_set_flags sources)
  foreach(source IN LISTS sources)
    if(source MATCHES "/src/kernels/cpu/")
      set(flags $<$<CONFIG:Release>:-O3>)
      foreach(variant IN LISTS WEFT_VARIANTS)
        if(source MATCHES "/${variant}/")
          # Clean-up for exceptions would refer to a weak symbol.
          list(APPEND flags ${WEFT_VARIANT_${variant}} -fno-exceptions)
          set_source_files_properties(${source} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
        endif()
      endforeach()
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${flags}")
    endif()
  endforeach()
endfunction()
