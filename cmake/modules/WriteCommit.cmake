# cmake -DSOURCE_DIR=... -DHEADER=... -P WriteCommit.cmake
# Writes the commit that is checked out in SOURCE_DIR, with -dirty where files
# differ from it, to HEADER; run by every build. An unchanged header keeps its
# time, so that nothing is compiled anew.

find_package(Git QUIET)
set(NM_SPARSE_COMMIT unknown)
if(GIT_FOUND)
  execute_process(
    COMMAND ${GIT_EXECUTABLE} describe --always --dirty --abbrev=12
    WORKING_DIRECTORY ${SOURCE_DIR}
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE
    RESULT_VARIABLE status ERROR_QUIET)
  if(status EQUAL 0)
    set(NM_SPARSE_COMMIT ${commit})
  endif()
endif()
configure_file(${SOURCE_DIR}/include/nm_sparse/Commit.h.in ${HEADER} @ONLY)
