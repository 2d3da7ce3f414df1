# What the program finds by its file: ops, providers, kernels, models, passes, fusions. (The verbs stand in program.cmake.)

set(provider_folders ${WEFT_PROVIDERS})
list(TRANSFORM provider_folders PREPEND src/kernels/)
set(provider_layers ${WEFT_PROVIDERS})
list(TRANSFORM provider_layers PREPEND weft_kernels_)

weft_table(
  FILE ${WEFT_GENERATED}/op_table.cpp
  FOLDERS src/ops
  HEADER ir/op.h ENTRY OpEntry ACCESS op_table
  FUNCTION define_op_@stem@ ARGUMENT OpDefinition& FIELDS @stem@)
weft_table(
  FILE ${WEFT_GENERATED}/op_product_table.cpp
  FOLDERS src/ops/products
  HEADER ir/op_products.h ENTRY OpProductEntry ACCESS op_product_table
  FUNCTION define_op_product_@stem@ ARGUMENT OpTable& FIELDS @stem@)
set(includes "")
weft_sources(sources IN src/ops)
foreach(source IN LISTS sources)
  weft_fill(include "#include \"ops/@stem@.h\"" ${source})
  string(APPEND includes "${include}\n")
endforeach()
weft_write_if_changed(${WEFT_GENERATED}/ops/all.h "#pragma once

// Made by the build from the files of: src/ops

${includes}")
weft_table(
  FILE ${WEFT_GENERATED}/kernel_table.cpp
  FOLDERS ${provider_folders} EXCEPT provider.cpp
  HEADER kernels/registry.h ENTRY KernelEntry ACCESS kernel_table
  FUNCTION define_kernels_@folder@_@stem@ ARGUMENT KernelRegistry& FIELDS @folder@ @stem@)
weft_table(
  FILE ${WEFT_GENERATED}/model_table.cpp
  FOLDERS src/models EXCEPT model.cpp unread_tensors.cpp
  HEADER models/model.h ENTRY ModelEntry ACCESS model_table
  FUNCTION define_model_@stem@ ARGUMENT ModelRegistry& FIELDS @stem@)
weft_table(
  FILE ${WEFT_GENERATED}/pattern_table.cpp
  FOLDERS src/passes/fusion
  HEADER passes/pattern_pass.h ENTRY PatternEntry ACCESS pattern_table
  FUNCTION define_patterns_@stem@ ARGUMENT PatternList& FIELDS @stem@)
weft_declarations(
  FILE ${WEFT_GENERATED}/passes/all.h
  FOLDERS src/passes EXCEPT equal_spellings.cpp pattern_pass.cpp
  HEADER passes/pass.h DECLARATION "PassResult @stem@(Graph& graph, PassContext& context);")

# {name, why it is absent, what gives its version} of every provider, in the order of names.
set(declarations "")
set(rows "")
set(all_providers ${WEFT_PROVIDERS} ${WEFT_ABSENT_PROVIDERS})
list(SORT all_providers)
foreach(provider IN LISTS all_providers)
  set(version nullptr)
  if(provider IN_LIST WEFT_PROVIDERS AND EXISTS ${CMAKE_SOURCE_DIR}/src/kernels/${provider}/provider.cpp)
    set(version provider_version_${provider})
    string(APPEND declarations "std::string ${version}();\n")
  endif()
  string(APPEND rows "    {\"${provider}\", \"${WEFT_ABSENT_${provider}}\", ${version}},\n")
endforeach()
weft_write_if_changed(${WEFT_GENERATED}/provider_table.cpp "// Made by the build from the folders of src/kernels

#include \"kernels/provider.h\"

namespace weft {

${declarations}
namespace {

constexpr ProviderEntry kEntries[] = {
${rows}};

}  // namespace

std::span<const ProviderEntry> provider_table() { return kEntries; }

}  // namespace weft
")

# The layer that declares a table cannot include what stands in it, but a program that calls the table needs both: a
# circle of libraries, which the linker walks three times (layer to table, table to entries, entries to layer).
function(weft_link_table name declaring_layer)
  add_library(weft_${name} STATIC ${WEFT_GENERATED}/${name}.cpp)
  target_link_libraries(weft_${name} PUBLIC ${declaring_layer} ${ARGN})
  set_property(TARGET weft_${name} PROPERTY LINK_INTERFACE_MULTIPLICITY 3)
  set_property(TARGET ${declaring_layer} APPEND PROPERTY INTERFACE_LINK_LIBRARIES weft_${name})
endfunction()

foreach(provider IN LISTS WEFT_PROVIDERS)
  if(TARGET weft_library_${provider})
    target_link_libraries(weft_kernels_${provider} PRIVATE $<BUILD_INTERFACE:weft_library_${provider}>)
  endif()
endforeach()

weft_link_table(op_table weft_ir weft_ops)
weft_link_table(op_product_table weft_ir weft_ops)
weft_link_table(kernel_table weft_kernels ${provider_layers})
weft_link_table(provider_table weft_kernels ${provider_layers})
weft_link_table(pattern_table weft_passes)
weft_link_table(model_table weft_models)
