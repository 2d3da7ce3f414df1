#!/bin/sh
# Builds weft_device_check where there is a GPU, CUDA 13 and a C++20 compiler (g++ 11 or newer) and no more: no CMake, no
# library, no package. Also code for one other architecture alone, which the device must refuse.
#
#   tools/build_device_check.sh [--fake-only] [FOLDER]        (build/device_check; $CXX, $NVCC, $JOBS)
#
# --fake-only: without nvcc, for the fake device alone. Recorded launches are made where all of Weft is built, and come
# with these sources in one archive (tools/pack_device_check.sh): FOLDER/launches.bin.
set -eu
cd "$(dirname "$0")/.."

[ "$(uname -m)" = x86_64 ] || {
  echo "build_device_check: wanted x86-64, for whose fibers the emulator is written, but this is $(uname -m)" >&2
  exit 2
}
device_code=yes
if [ "${1:-}" = "--fake-only" ]; then
  device_code=no
  shift
fi
folder=${1:-build/device_check}
CXX=${CXX:-g++}
NVCC=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
JOBS=${JOBS:-$(nproc)}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

kernels=""
for source in src/kernels/cuda/device/*.cu; do kernels="$kernels $(basename "$source" .cu)"; done

names=""
if [ $device_code = yes ]; then
  "$NVCC" --version >/dev/null 2>&1 || {
    echo "build_device_check: wanted nvcc of CUDA 13 in PATH or as \$NVCC, but $NVCC does not run" >&2
    exit 2
  }
  names=$kernels
  export NVCC_APPEND_FLAGS="${NVCC_APPEND_FLAGS:-} --threads 4"  # architectures at once
  {
    for kernel in $kernels; do echo "compile $NVCC src/kernels/cuda/device/$kernel.cu $folder/$kernel.fatbin"; done
    for other in 80 120; do
      echo "compile-only $NVCC src/kernels/cuda/device/per_token_group_quant.cu $folder/only_sm_$other.fatbin $other"
    done
  } | xargs -P "$JOBS" -n 1 -d '\n' sh -c 'exec tools/device_code.sh $0'
fi

# What cmake/cuda.cmake makes of the same files.
{
  echo '#include "kernels/cuda/emulator/kernel_table.h"'
  echo "namespace weft::cuda {"
  for kernel in $kernels; do echo "std::span<const EmulatedKernel> emulated_$kernel();"; done
  echo "std::span<const std::span<const EmulatedKernel>> emulated_kernels() {"
  echo "  static const std::span<const EmulatedKernel> kFiles[] = {"
  for kernel in $kernels; do echo "      emulated_$kernel(),"; done
  printf '  };\n  return kFiles;\n}\n}  // namespace weft::cuda\n'
} >"$folder/emulated_kernels.cpp"
# shellcheck disable=SC2086  # names are words
tools/device_code.sh table "$folder" $names >"$folder/device_code_table.cpp"

sources="$folder/emulated_kernels.cpp $folder/device_code_table.cpp apps/device_check/*.cpp
         src/runtime/cuda/current_guard.cpp src/runtime/cuda/driver*.cpp src/runtime/cuda/fake_*.cpp
         src/runtime/cuda/library_places.cpp src/runtime/cuda/nvrtc.cpp
         src/kernels/cuda/code/*.cpp src/kernels/cuda/emulator/*.cpp src/kernels/cuda/lib/group_launch.cpp
         src/kernels/cuda/lib/group_rules.cpp src/kernels/cuda/lib/attention_plan.cpp
         src/kernels/cuda/lib/head_rotation_plan.cpp src/kernels/cuda/lib/row_launch.cpp
         src/kernels/cuda/lib/silu_and_mul_per_block_quant.cpp src/builtin/emulated_kernels.cpp"
for name in attribute device dim dim_range dim_text dtype meta; do
  sources="$sources src/tensor/$name.cpp"
done
for name in environment error file_system files first_time_work shared_library text utf8; do
  sources="$sources src/base/$name.cpp"
done
# As cmake/compile_options.cmake has them. Contraction off: bits would depend on the compiler.
flags="-std=c++20 -O2 -march=x86-64-v2 -ffp-contract=off -Iapps/device_check/without_fmt -Isrc -I."
rm -rf "$folder/objects"
mkdir "$folder/objects"
for source in $sources src/kernels/cuda/device/*.cu; do
  object=$folder/objects/$(echo "${source#"$folder"/}" | tr / _).o
  echo "$CXX $flags ${CXXFLAGS:-} -x c++ -c $source -o $object"
done | xargs -P "$JOBS" -n 1 -d '\n' sh -c 'exec $0'
# An archive: what else lies in these folders stays out.
rm -f "$folder/objects.a"
mv "$folder/objects/apps_device_check_main.cpp.o" "$folder/main.o"
ar rcs "$folder/objects.a" "$folder"/objects/*.o
# shellcheck disable=SC2086  # perhaps a compiler cache before it
$CXX "$folder/main.o" "$folder/objects.a" -ldl -pthread -o "$folder/weft_device_check"
echo "$folder/weft_device_check"
