# Links a tool with the archives of MLIR and LLVM, so that it runs on a machine
# that has neither. The imported targets cannot be used: in the package each of
# them names libLLVM.so.

function(nm_sparse_link_static target)
  file(GLOB archives ${LLVM_LIBRARY_DIR}/libMLIR*.a ${LLVM_LIBRARY_DIR}/libLLVM*.a)
  # Test passes, the C API and the other heads of MLIR; the archives of libraries
  # that are loaded at run time.
  list(FILTER archives EXCLUDE REGEX "Test|CAPI|SparseTensorRuntime|JitRunner")
  find_library(NM_SPARSE_ZLIB NAMES libz.a z REQUIRED)
  find_library(NM_SPARSE_ZSTD NAMES libzstd.a zstd REQUIRED)
  target_link_libraries(${target} PRIVATE
    ${archives} ${NM_SPARSE_ZLIB} ${NM_SPARSE_ZSTD} ${CMAKE_DL_LIBS} pthread m)
  target_link_options(${target} PRIVATE
    -static-libstdc++ -static-libgcc -Wl,--gc-sections -Wl,--as-needed -s)
endfunction()
