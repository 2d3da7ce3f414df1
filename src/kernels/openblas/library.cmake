# The pthread flavour: kernels/openblas/library.h says why.
find_path(WEFT_OPENBLAS_HEADERS openblas_config.h PATH_SUFFIXES openblas-pthread openblas NO_CACHE)
if(WEFT_OPENBLAS_HEADERS)
  add_library(weft_library_openblas INTERFACE)
  target_include_directories(weft_library_openblas SYSTEM INTERFACE ${WEFT_OPENBLAS_HEADERS})
else()
  set(provider_missing "OpenBLAS (Debian's libopenblas-pthread-dev) was not found at build time")
endif()
