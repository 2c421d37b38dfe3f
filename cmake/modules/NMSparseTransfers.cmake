# The transfers of this compiler, in the order in which messages list them. Each
# is a folder of lib/Transfers; this line registers it.
set(NM_SPARSE_TRANSFERS Copy Gather Resident Bulk Direct
  CACHE STRING "Transfers to build: folders of lib/Transfers, in this order")

foreach(transfer IN LISTS NM_SPARSE_TRANSFERS)
  if(NOT EXISTS ${PROJECT_SOURCE_DIR}/lib/Transfers/${transfer}/${transfer}.td)
    message(FATAL_ERROR "NM_SPARSE_TRANSFERS names ${transfer}, but there is no "
            "lib/Transfers/${transfer}/${transfer}.td")
  endif()
endforeach()
