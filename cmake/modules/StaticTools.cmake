# Links a tool or a library with the archives of MLIR and LLVM, so that it runs on
# a machine that has neither. The imported targets cannot be used: in the package
# each of them names libLLVM.so.

# The archives of MLIR and LLVM.
function(nm_sparse_find_archives result)
  file(GLOB archives ${LLVM_LIBRARY_DIR}/libMLIR*.a ${LLVM_LIBRARY_DIR}/libLLVM*.a)
  # Test passes, the C API and the other heads of MLIR; the archives of libraries
  # that are loaded at run time.
  list(FILTER archives EXCLUDE REGEX "Test|CAPI|SparseTensorRuntime|JitRunner")
  set(${result} ${archives} PARENT_SCOPE)
endfunction()

function(nm_sparse_link_archives target)
  find_library(NM_SPARSE_ZLIB NAMES libz.a z REQUIRED)
  find_library(NM_SPARSE_ZSTD NAMES libzstd.a zstd REQUIRED)
  target_link_libraries(${target} PRIVATE
    ${ARGN} ${NM_SPARSE_ZLIB} ${NM_SPARSE_ZSTD} ${CMAKE_DL_LIBS} pthread m)
  target_link_options(${target} PRIVATE
    -static-libstdc++ -static-libgcc -Wl,--gc-sections -Wl,--as-needed -s)
endfunction()

function(nm_sparse_link_static target)
  nm_sparse_find_archives(archives)
  nm_sparse_link_archives(${target} ${archives})
endfunction()

# The same for a library that is to be small (docs/decisions/068-one-c-interface.md).
# LLVM and MLIR throw no exceptions, so tables for unwinding their frames are left
# out, and equal functions are one.
function(nm_sparse_link_static_small target)
  nm_sparse_find_archives(archives)
  find_program(NM_SPARSE_OBJCOPY NAMES llvm-objcopy
    HINTS ${LLVM_TOOLS_BINARY_DIR} NO_DEFAULT_PATH REQUIRED)
  set(folder ${PROJECT_BINARY_DIR}/archives)
  file(MAKE_DIRECTORY ${folder})
  set(linked "")
  set(copies "")
  foreach(archive ${archives})
    # Small ones gain nothing that a person would notice.
    file(SIZE ${archive} size)
    if(size LESS 1000000)
      list(APPEND linked ${archive})
      continue()
    endif()
    get_filename_component(name ${archive} NAME)
    add_custom_command(OUTPUT ${folder}/${name}
      COMMAND ${NM_SPARSE_OBJCOPY} --remove-section=.eh_frame
              --remove-section=.rela.eh_frame ${archive} ${folder}/${name}
      DEPENDS ${archive} COMMENT "" VERBATIM)
    list(APPEND linked ${folder}/${name})
    list(APPEND copies ${folder}/${name})
  endforeach()
  add_custom_target(${target}Archives DEPENDS ${copies})
  add_dependencies(${target} ${target}Archives)
  nm_sparse_link_archives(${target} ${linked})
  target_link_options(${target} PRIVATE
    -Wl,--icf=all -Wl,-O2 -Wl,-z,pack-relative-relocs)
endfunction()
