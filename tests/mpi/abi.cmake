# MPI's standard ABI (label abi): a stand-in of ours over the installed Open MPI, and the real libraries where they are
# installed: Debian's, from Open MPI 6 and MPICH 5 on. Each program is built with one library's header, and runs with each.
set(abi_table ${CMAKE_SOURCE_DIR}/spank_plugin/capture/abi)
get_property(abi_includes TARGET lbf_capture_abi PROPERTY LBF_MPI_INCLUDE_DIRECTORIES)
list(GET abi_includes 1 abi_prototypes)
set(abi_programs bindings one_sided communicators polling cancel_free definitions behaviour ping_pong threads system_calls)
set(abi_outputs)

# abi_programs(FOLDER LIBRARY INCLUDE_DIRECTORIES SOURCE ...): programs of the ABI, and what run_case wants beside them.
function(abi_folder folder library include_directories)
  file(MAKE_DIRECTORY ${bin}/${folder})
  list(TRANSFORM include_directories PREPEND -I)
  foreach(source IN LISTS ARGN)
    get_filename_component(source ${source} ABSOLUTE)
    get_filename_component(name ${source} NAME_WE)
    add_custom_command(
      OUTPUT ${bin}/${folder}/${name}
      COMMAND ${CMAKE_C_COMPILER} -g -O1 -w -pthread -DSTANDARD_ABI ${include_directories} -I${CMAKE_CURRENT_SOURCE_DIR}
              -I${CMAKE_CURRENT_SOURCE_DIR}/conformance ${source} ${library} -o ${bin}/${folder}/${name}
      DEPENDS ${source} counted.h bindings_body.inc ${library} lbf_mpi_abi_prototypes ${abi_table}/mpi.h
      VERBATIM)
    list(APPEND abi_outputs ${bin}/${folder}/${name})
  endforeach()
  foreach(tool ring_dump ring_collect ring_windows)
    add_custom_command(OUTPUT ${bin}/${folder}/${tool}
      COMMAND ${CMAKE_COMMAND} -E create_symlink ../${tool} ${bin}/${folder}/${tool} VERBATIM)
    list(APPEND abi_outputs ${bin}/${folder}/${tool})
  endforeach()
  set(abi_outputs ${abi_outputs} PARENT_SCOPE)
endfunction()

# abi_tests(NAME FOLDER LIBRARY FAMILY MPIRUN CASE ...)
function(abi_tests name folder library family mpirun)
  foreach(case IN LISTS ARGN)
    add_test(NAME abi.${name}.${case}
      COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/run_case ${case} ${bin}/${folder} $<TARGET_FILE:lbf_capture> ${mpirun} ${family} ${library})
    set_tests_properties(abi.${name}.${case} PROPERTIES LABELS "mpi;abi" TIMEOUT 180 SKIP_RETURN_CODE 77 RUN_SERIAL ON)
  endforeach()
endfunction()

# The stand-in.
set(stand_in ${CMAKE_CURRENT_BINARY_DIR}/stand_in.c)
set(stand_in_library ${bin}/abi/libstand_in_mpi_abi.so)
add_custom_command(
  OUTPUT ${stand_in}
  COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/abi/generate_stand_in.py
          ${CMAKE_SOURCE_DIR}/event/mpi_functions.yml ${abi_table}/mpi.h ${stand_in}
  DEPENDS abi/generate_stand_in.py ${CMAKE_SOURCE_DIR}/event/mpi_functions.yml ${abi_table}/mpi.h
  VERBATIM)
list(TRANSFORM LBF_OPENMPI_INCLUDE_DIRS PREPEND -I OUTPUT_VARIABLE openmpi_includes)
add_custom_command(
  OUTPUT ${stand_in_library}
  COMMAND ${CMAKE_C_COMPILER} -g -O1 -w -shared -fPIC "-DSTAND_IN_FOR=\"libmpi.so.40\"" ${openmpi_includes}
          -I${CMAKE_CURRENT_SOURCE_DIR}/abi ${stand_in} -Wl,-soname,libmpi_abi.so.1 -Wl,-z,defs -ldl -o ${stand_in_library}
  DEPENDS ${stand_in} abi/stand_in.h
  VERBATIM)
list(TRANSFORM abi_programs APPEND .c OUTPUT_VARIABLE abi_sources)
abi_folder(abi ${stand_in_library} "${abi_includes}" ${abi_sources})
add_custom_command(
  OUTPUT ${bin}/abi/libmpi_plugin.so
  COMMAND ${CMAKE_C_COMPILER} -g -O2 -w -shared -fPIC -I${abi_table} -I${abi_prototypes} ${CMAKE_CURRENT_SOURCE_DIR}/mpi_plugin.c
          ${stand_in_library} -o ${bin}/abi/libmpi_plugin.so
  DEPENDS mpi_plugin.c ${stand_in_library} lbf_mpi_abi_prototypes ${abi_table}/mpi.h
  VERBATIM)
list(APPEND abi_outputs ${bin}/abi/libmpi_plugin.so)
if(LBF_OPENMPI_VERSION VERSION_LESS 6)  # from then on Open MPI is one itself
  abi_tests(stand_in abi ${stand_in_library} openmpi ${LBF_MPIRUN}
    abi bindings one_sided communicators polling cancelled_free definitions error_return threads system_calls)
endif()

# The real ones.
find_path(LBF_ABI_MPICH_INCLUDE mpi.h PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/mpi_abi_mpich/include NO_DEFAULT_PATH)
find_file(LBF_ABI_MPICH_LIBRARY libmpi_abi_mpich.so.1.0.0 PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE} NO_DEFAULT_PATH)
find_path(LBF_ABI_OPENMPI_INCLUDE mpi.h PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openmpi/include/standard_abi NO_DEFAULT_PATH)
find_file(LBF_ABI_OPENMPI_LIBRARY libmpi_abi_openmpi.so.1.0.0 PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE} NO_DEFAULT_PATH)
set(abi_families)
foreach(family openmpi mpich)
  string(TOUPPER ${family} upper)
  if(LBF_ABI_${upper}_INCLUDE AND LBF_ABI_${upper}_LIBRARY)
    list(APPEND abi_families ${family})
    abi_folder(abi_${family} ${LBF_ABI_${upper}_LIBRARY} ${LBF_ABI_${upper}_INCLUDE}
      ${abi_sources} surface.c ${conformance_dir}/conformance_collectives.c ${conformance_dir}/conformance_point_to_point.c
      ${conformance_dir}/conformance_local_calls.c)
  endif()
endforeach()
set(abi_mpirun_openmpi ${LBF_MPIRUN})
set(abi_mpirun_mpich ${LBF_MPICH_RUN})
foreach(built IN LISTS abi_families)
  string(TOUPPER ${built} upper)
  abi_tests(${built} abi_${built} ${LBF_ABI_${upper}_LIBRARY} ${built} ${abi_mpirun_${built}} abi_table)
  set_tests_properties(abi.${built}.abi_table PROPERTIES
    ENVIRONMENT "ABI_INCLUDE=${LBF_ABI_${upper}_INCLUDE};ABI_PROTOTYPES=${abi_prototypes}")
  foreach(run IN LISTS abi_families)
    string(TOUPPER ${run} upper)
    abi_tests(${built}_on_${run} abi_${built} ${LBF_ABI_${upper}_LIBRARY} ${run} ${abi_mpirun_${run}}
      bindings surface conformance communicators polling cancelled_free definitions error_return threads system_calls abi_beside)
  endforeach()
  # MPICH 5.0.2 aborts in MPI_Win_allocate_shared, captured or not.
  abi_tests(${built}_on_openmpi abi_${built} ${LBF_ABI_OPENMPI_LIBRARY} openmpi ${LBF_MPIRUN} one_sided)
endforeach()
add_custom_target(lbf_abi_programs ALL DEPENDS ${abi_outputs})
