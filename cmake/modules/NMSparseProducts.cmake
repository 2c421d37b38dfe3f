# The products of this compiler, in the order in which their schedules are
# compared. Each is a folder of lib/Products; this line registers it.
set(NM_SPARSE_PRODUCTS
  Dot PanelDot Simt Mma Wgmma WgmmaExpand WgmmaSp WgmmaRs MmaExpand MmaSp Immediate
  CACHE STRING "Products to build: folders of lib/Products, in this order")

foreach(product IN LISTS NM_SPARSE_PRODUCTS)
  if(NOT EXISTS ${PROJECT_SOURCE_DIR}/lib/Products/${product}/${product}.td)
    message(FATAL_ERROR "NM_SPARSE_PRODUCTS names ${product}, but there is no "
            "lib/Products/${product}/${product}.td")
  endif()
endforeach()
