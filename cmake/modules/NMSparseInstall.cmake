# Installs the CMake package: find_package(NMSparse) in another project defines
# our libraries as targets, with MLIR behind them. Include it last.

include(CMakePackageConfigHelpers)
get_property(NM_SPARSE_EXPORTED_LIBS GLOBAL PROPERTY NM_SPARSE_LIBS)
set(_package_dir lib/cmake/NMSparse)

configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/NMSparseConfig.cmake.in
  ${PROJECT_BINARY_DIR}/${_package_dir}/NMSparseConfig.cmake
  INSTALL_DESTINATION ${_package_dir})
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/${_package_dir}/NMSparseConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)

install(EXPORT NMSparseTargets DESTINATION ${_package_dir})
install(FILES
  ${PROJECT_BINARY_DIR}/${_package_dir}/NMSparseConfig.cmake
  ${PROJECT_BINARY_DIR}/${_package_dir}/NMSparseConfigVersion.cmake
  DESTINATION ${_package_dir})

# Databases of measured schedules (docs/Tuning.md).
if(SKBUILD)
  # Into the Python package, which reads that of its GPU.
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/share/nm_sparse/tuned
    DESTINATION nm_sparse COMPONENT python)
else()
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/share/nm_sparse DESTINATION share
    PATTERN samples EXCLUDE)
endif()
