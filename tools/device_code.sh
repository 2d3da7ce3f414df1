#!/bin/sh
# CUDA kernels as device code inside the program, for the build (cmake/device_code.cmake) and tools/gpu_check.
#
#   tools/device_code.sh compile NVCC SOURCE.cu FATBIN [DEPENDENCIES]
#       machine code for every architecture and PTX of the last; what was read in the form of make
#   tools/device_code.sh compile-only NVCC SOURCE.cu FATBIN ARCHITECTURE
#       machine code for one, which others refuse
#   tools/device_code.sh account NVCC SOURCE.cu CUBIN ARCHITECTURE
#       the same machine code as `compile` makes for it, alone; prints ptxas's account of registers, stack and spills
#   tools/device_code.sh architectures
#       prints them
#   tools/device_code.sh table FOLDER [NAME...]
#       prints the C++ source of kernels/cuda/code/device_code.h's tables: FOLDER/NAME.fatbin by the assembler; no
#       names for a program without device code
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
architectures="80 86 89 90 100 120"

# What is fused is spelled so. Both kinds of mathematics. `size`: a tenth of the bytes; drivers for CUDA 12.4 and newer
# read it.
flags="-x cu -std=c++20 -O3 -fmad=false -DWEFT_REFERENCE_KERNELS"
packed="-fatbin --compress-mode=size"

compile() {
  nvcc=$1 source=$2 fatbin=$3 dependencies=${4:-}
  set --
  for architecture in $architectures; do
    set -- "$@" -gencode "arch=compute_$architecture,code=sm_$architecture"
  done
  # shellcheck disable=SC2086  # flags are words
  exec "$nvcc" $flags $packed "-I$root/src" "$@" -gencode "arch=compute_$architecture,code=compute_$architecture" \
    ${dependencies:+-MD -MF "$dependencies"} "$source" -o "$fatbin"
}

compile_only() {
  # shellcheck disable=SC2086  # flags are words
  exec "$1" $flags $packed "-I$root/src" -gencode "arch=compute_$4,code=sm_$4" "$2" -o "$3"
}

account() {
  # shellcheck disable=SC2086  # flags are words
  exec "$1" $flags -cubin -Xptxas -v "-I$root/src" -gencode "arch=compute_$4,code=sm_$4" "$2" -o "$3"
}

table() {
  folder=$1
  shift
  echo "// Made by tools/device_code.sh from the fatbins of kernels/cuda/device"
  echo
  echo '#include "kernels/cuda/code/device_code.h"'
  echo
  for name in "$@"; do
    echo "__asm__(\".pushsection .rodata; .balign 16; .globl weft_code_$name; .hidden weft_code_$name; \""
    echo "        \"weft_code_$name: .incbin \\\"$folder/$name.fatbin\\\"; .globl weft_code_end_$name; \""
    echo "        \".hidden weft_code_end_$name; weft_code_end_$name: .byte 0; .popsection\");"
    echo "extern \"C\" __attribute__((visibility(\"hidden\"))) const std::byte weft_code_$name[], weft_code_end_$name[];"
  done
  echo
  echo "namespace weft::cuda {"
  echo
  echo "std::span<const DeviceCode> device_code() {"
  [ $# -eq 0 ] || echo "  static const DeviceCode kFiles[] = {"
  for name in "$@"; do echo "      {\"$name\", {weft_code_$name, weft_code_end_$name}},"; done
  if [ $# -eq 0 ]; then echo "  return {};"; else printf '  };\n  return kFiles;\n'; fi
  echo "}"
  echo
  echo "std::span<const int> device_code_architectures() {"
  if [ $# -eq 0 ]; then
    echo "  return {};"
  else
    echo "  static constexpr int kArchitectures[] = {$(echo "$architectures" | sed 's/ /, /g')};"
    echo "  return kArchitectures;"
  fi
  echo "}"
  echo
  echo "}  // namespace weft::cuda"
}

case "${1:-}" in
  compile | account | table) "$@" ;;
  architectures) echo "$architectures" ;;
  compile-only)
    shift
    compile_only "$@"
    ;;
  *)
    sed -n '4,15s/^# *//p' "$0" >&2
    exit 2
    ;;
esac
