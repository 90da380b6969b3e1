# Run by CPack between installing and packing: packages have their manual pages and changelogs compressed, without names
# and times in them.
file(GLOB_RECURSE files
  ${CPACK_TEMPORARY_DIRECTORY}/*/usr/share/man/*.[1-9]
  ${CPACK_TEMPORARY_DIRECTORY}/*/usr/share/doc/*/changelog*)
if(files)
  execute_process(COMMAND gzip -9n ${files} COMMAND_ERROR_IS_FATAL ANY)
endif()
