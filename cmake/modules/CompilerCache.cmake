# Compiles through ccache where there is one. Precompiled headers need the
# options below, or every file misses the cache.

find_program(NM_SPARSE_CCACHE ccache)
mark_as_advanced(NM_SPARSE_CCACHE)
if(NM_SPARSE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(_ccache ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    ${NM_SPARSE_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${_ccache})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${_ccache})
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
  endif()
endif()
