# Libraries of the distribution, joined in one target that every layer sees; the linker drops what a program does not
# use.

set(WEFT_PACKAGES Threads fmt spdlog simdjson)  # what links with the libraries finds these, too
foreach(package IN LISTS WEFT_PACKAGES)
  find_package(${package} REQUIRED)
endforeach()
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_library(WEFT_PCRE2 pcre2-8 REQUIRED)
find_library(WEFT_UTF8PROC utf8proc REQUIRED)
find_library(WEFT_XXHASH xxhash REQUIRED)
find_library(WEFT_ZIP zip REQUIRED)
find_library(WEFT_YAML yaml REQUIRED)
# TLS, which only the server has.
find_package(OpenSSL 3)
if(NOT OPENSSL_FOUND)
  message(FATAL_ERROR "OpenSSL 3 is missing, which the server needs for TLS: on Debian it is libssl-dev (tools/setup.sh build)")
endif()
# Headers alone; only the server's connections include them.
find_path(WEFT_BOOST_HEADERS boost/beast/http/parser.hpp REQUIRED)

add_library(weft_libraries INTERFACE)
target_link_libraries(
  weft_libraries INTERFACE Threads::Threads fmt::fmt spdlog::spdlog simdjson::simdjson ${CMAKE_DL_LIBS}
                           $<BUILD_INTERFACE:nlohmann_json::nlohmann_json> $<BUILD_INTERFACE:CLI11::CLI11>)
# Installed, by name: another machine has them elsewhere.
foreach(library IN ITEMS PCRE2:pcre2-8 UTF8PROC:utf8proc XXHASH:xxhash ZIP:zip YAML:yaml)
  string(REPLACE ":" ";" library ${library})
  list(GET library 0 found)
  list(GET library 1 name)
  target_link_libraries(weft_libraries INTERFACE $<BUILD_INTERFACE:${WEFT_${found}}> $<INSTALL_INTERFACE:${name}>)
endforeach()

# The providers: the folders of src/kernels/. One that needs a library of its own has a library.cmake, which looks for
# it and defines the target weft_library_<provider>, or sets provider_missing to what is wrong. A provider that misses
# its library is left out of layers and tables; all that stays are its name and the reason, for `weft info`.
#
# WEFT_PROVIDERS are those of this build, WEFT_ABSENT_PROVIDERS the others, WEFT_ABSENT_<provider> the reason.

file(GLOB WEFT_PROVIDERS CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/src/kernels ${CMAKE_SOURCE_DIR}/src/kernels/*)
list(FILTER WEFT_PROVIDERS EXCLUDE REGEX "[.]")
set(WEFT_ABSENT_PROVIDERS "")
foreach(provider IN LISTS WEFT_PROVIDERS)
  if(NOT EXISTS ${CMAKE_SOURCE_DIR}/src/kernels/${provider}/library.cmake)
    continue()
  endif()
  string(TOUPPER WEFT_${provider} switch)
  option(${switch} "Build the provider ${provider} where its library is found" ON)
  set(provider_missing "")
  if(${switch})
    include(src/kernels/${provider}/library.cmake)
  else()
    set(provider_missing "switched off at build time (${switch}=OFF)")
  endif()
  if(provider_missing)
    list(APPEND WEFT_ABSENT_PROVIDERS ${provider})
    set(WEFT_ABSENT_${provider} ${provider_missing})
  endif()
endforeach()
if(WEFT_ABSENT_PROVIDERS)
  list(REMOVE_ITEM WEFT_PROVIDERS ${WEFT_ABSENT_PROVIDERS})
endif()
