# The storages of weights beside the canonical form. Each is a folder of
# lib/Dialect/NMSparse/Storages; this line registers it.
set(NM_SPARSE_STORAGES Bitmap KMajor Ragged Code
  CACHE STRING "Storages to build: folders of lib/Dialect/NMSparse/Storages")

foreach(storage IN LISTS NM_SPARSE_STORAGES)
  set(definition ${PROJECT_SOURCE_DIR}/lib/Dialect/NMSparse/Storages/${storage}/${storage}.td)
  if(NOT EXISTS ${definition})
    message(FATAL_ERROR "NM_SPARSE_STORAGES names ${storage}, but there is no "
            "${definition}")
  endif()
endforeach()
