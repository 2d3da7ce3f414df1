find_path(WEFT_ONEDNN_HEADERS oneapi/dnnl/dnnl.h NO_CACHE)
if(WEFT_ONEDNN_HEADERS)
  # The kernels hold OpenMP to one thread; of another pool's threads they know nothing.
  file(STRINGS ${WEFT_ONEDNN_HEADERS}/oneapi/dnnl/dnnl_config.h threading
       REGEX "define DNNL_CPU_THREADING_RUNTIME DNNL_RUNTIME_(OMP|SEQ)$")
  # Primitives are made in another way before and after.
  file(STRINGS ${WEFT_ONEDNN_HEADERS}/oneapi/dnnl/dnnl_version.h version_2 REGEX "define DNNL_VERSION_MAJOR 2$")
  if(NOT version_2)
    set(provider_missing "the oneDNN found at build time is not of version 2")
  elseif(threading)
    add_library(weft_library_onednn INTERFACE)
    target_include_directories(weft_library_onednn SYSTEM INTERFACE ${WEFT_ONEDNN_HEADERS})
  else()
    set(provider_missing "the oneDNN found at build time has threads that are not OpenMP's")
  endif()
else()
  set(provider_missing "oneDNN (Debian's libdnnl-dev) was not found at build time")
endif()
