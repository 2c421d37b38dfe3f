# Wrappers that decide once how this project's targets are named, linked and
# installed.

include(StaticTools)

# Headers that nearly every file needs. NVVMDialect.h alone costs 16-20 s; with
# these headers precompiled, and templates instantiated in them, a pass file
# compiles in 1-5 s. The files of a tool or a unit test gain as much.
# NM_SPARSE_PRECOMPILED names the header (cmake/precompiled); none where it is empty.
function(nm_sparse_precompile_headers target)
  if(NOT NM_SPARSE_PRECOMPILED)
    return()
  endif()
  target_precompile_headers(${target} REUSE_FROM ${NM_SPARSE_PRECOMPILED})
  # A header that was compiled with -fPIC is of no use with the -fPIE of programs.
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    target_compile_options(${target} PRIVATE -fpch-instantiate-templates)
  endif()
endfunction()

# nm_sparse_add_precompiled(NAME header)
# A header that is compiled once, with the flags that every library shares.
function(nm_sparse_add_precompiled name header)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  set(NM_SPARSE_PRECOMPILED "")
  add_library(${name} STATIC Carrier.cpp)
  target_precompile_headers(${name} PRIVATE ${header})
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    target_compile_options(${name} PRIVATE -fpch-instantiate-templates)
  endif()
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  nm_sparse_compile_options(${name})
endfunction()

# nm_sparse_add_library(NAME source... DEPENDS target... LINK_LIBS lib...)
# A static library of this project; LINK_LIBS names our own libraries and
# MLIR_LIBS upstream ones (which become the dylib when it is used).
function(nm_sparse_add_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK_LIBS;MLIR_LIBS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  target_link_libraries(${name} PUBLIC ${ARG_LINK_LIBS})
  nm_sparse_link_mlir(${name} ${ARG_MLIR_LIBS})
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
    $<INSTALL_INTERFACE:include>)
  nm_sparse_compile_options(${name})
  set_property(GLOBAL APPEND PROPERTY NM_SPARSE_LIBS ${name})
  install(TARGETS ${name} EXPORT NMSparseTargets ARCHIVE DESTINATION lib)
endfunction()

# nm_sparse_add_plain_library(NAME kind source...)
# A library of plain C++ (kind STATIC or SHARED): it uses neither LLVM nor MLIR,
# not their flags, and exports only the functions that say so.
function(nm_sparse_add_plain_library name kind)
  add_library(${name} ${kind} ${ARGN})
  target_compile_features(${name} PUBLIC cxx_std_17)
  target_compile_options(${name} PRIVATE
    $<$<NOT:$<CONFIG:Debug>>:-O2> -Wall -Wextra)
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:include>)
  set_target_properties(${name} PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib
    CXX_EXTENSIONS OFF
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    POSITION_INDEPENDENT_CODE ON
    DISABLE_PRECOMPILE_HEADERS ON)
  install(TARGETS ${name} EXPORT NMSparseTargets
    LIBRARY DESTINATION lib ARCHIVE DESTINATION lib)
endfunction()

# nm_sparse_link_whole(NAME archive-target...)
# Links all of our archives into a shared library, also what nothing in it calls.
function(nm_sparse_link_whole name)
  foreach(archive ${ARGN})
    target_link_libraries(${name} PRIVATE
      "-Wl,--whole-archive,$<TARGET_FILE:${archive}>,--no-whole-archive")
    add_dependencies(${name} ${archive})
    set_property(TARGET ${name} APPEND PROPERTY LINK_DEPENDS
      $<TARGET_FILE:${archive}>)
  endforeach()
endfunction()

# Link upstream libraries: the two dylibs, or (static tools) all archives into
# the tool and nothing into the libraries.
function(nm_sparse_link_mlir target)
  if(NM_SPARSE_STATIC_TOOLS)
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "EXECUTABLE")
      nm_sparse_link_static(${target})
    endif()
    return()
  endif()
  target_link_libraries(${target} PUBLIC MLIR LLVM)
endfunction()

function(nm_sparse_compile_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wno-unused-parameter)
  if(NM_SPARSE_ENABLE_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  nm_sparse_precompile_headers(${target})
endfunction()

# nm_sparse_tablegen(TARGET td-file out-file generator-args...)
# Appends to the outputs of `TARGET`, created by nm_sparse_tablegen_target.
macro(nm_sparse_tablegen td out)
  set(LLVM_TARGET_DEFINITIONS ${td})
  mlir_tablegen(${out} ${ARGN})
endmacro()

# nm_sparse_add_tool(NAME source... LINK_LIBS lib... MLIR_LIBS lib...)
# With NM_SPARSE_STATIC_TOOLS the tools that exist there (MULTICALL) become one
# executable, tools/nm-sparse, since each would hold its own copy of MLIR: their
# main is compiled as <name>_main.
function(nm_sparse_add_tool name)
  cmake_parse_arguments(ARG "MULTICALL" "" "LINK_LIBS;MLIR_LIBS" ${ARGN})
  if(NM_SPARSE_STATIC_TOOLS)
    if(ARG_MULTICALL)
      string(REPLACE "-" "_" function "${name}_main")
      add_library(${name}-objects OBJECT ${ARG_UNPARSED_ARGUMENTS})
      target_link_libraries(${name}-objects PRIVATE ${ARG_LINK_LIBS})
      target_compile_definitions(${name}-objects PRIVATE main=${function})
      target_compile_options(${name}-objects PRIVATE -Wno-missing-prototypes)
      set_property(GLOBAL APPEND PROPERTY NM_SPARSE_MULTICALL ${name})
      set_property(GLOBAL APPEND PROPERTY NM_SPARSE_MULTICALL_LIBS
        ${ARG_LINK_LIBS})
    endif()
    return()
  endif()
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${ARG_LINK_LIBS})
  nm_sparse_link_mlir(${name} ${ARG_MLIR_LIBS})
  nm_sparse_compile_options(${name})
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin
    INSTALL_RPATH_USE_LINK_PATH ON
    ENABLE_EXPORTS ON)
  install(TARGETS ${name} EXPORT NMSparseTargets RUNTIME DESTINATION bin)
endfunction()
