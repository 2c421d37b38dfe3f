#!/usr/bin/env bash
# Configures (the first time only; CMake watches its own files) and builds.
# Usage: build.sh [PRESET [TARGET...]], PRESET from CMakePresets.json, default dev.

source "$(dirname "$0")/common.sh"
preset=${1:-dev}
[ $# -eq 0 ] || shift

extra=()
[ "$preset" != asan ] || extra=("libclang-rt-$llvm-dev")
scripts/bootstrap.sh "${extra[@]}"

case $preset in
  dev) dir=$build ;;
  *) dir=$root/build-$preset ;;
esac
if [ ! -f "$dir/build.ninja" ]; then
  rm -f "$dir/CMakeCache.txt" # of a configuration that failed
  say "configuring $preset in ${dir#"$root"/}"
  if at_least "$(cmake_version)" 3.21; then
    cmake --preset "$preset" -B "$dir" --log-level=WARNING
  else
    # Presets came with CMake 3.21; these are the settings of `dev`.
    [ "$preset" = dev ] || die "preset $preset needs CMake 3.21, this is $(cmake_version)"
    cmake -S "$root" -B "$dir" -G Ninja -DCMAKE_BUILD_TYPE=Release \
      -DCMAKE_C_COMPILER="clang-$llvm" -DCMAKE_CXX_COMPILER="clang++-$llvm" \
      -DCMAKE_EXPORT_COMPILE_COMMANDS=ON \
      -DCMAKE_{EXE,SHARED,MODULE}_LINKER_FLAGS=-fuse-ld=lld \
      -DMLIR_DIR="/usr/lib/llvm-$llvm/lib/cmake/mlir" --log-level=WARNING
  fi
fi
ninja -C "$dir" "$@"
