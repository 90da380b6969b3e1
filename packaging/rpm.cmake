# RPMs in the layout of Rocky and its relatives. Dependencies are those that rpmbuild finds in programs and libraries, and the
# one that none of them shows: a SPANK plugin fits one release of Slurm only. The package slurm, of SchedMD's spec file and of
# EPEL, has PluginDir and its plugins; OpenHPC's is slurm-ohpc.
set(LBF_RPM_SLURM_PACKAGE slurm CACHE STRING "the package of Slurm that the plugin's one must fit")
set(fits_slurm "${LBF_RPM_SLURM_PACKAGE} >= ${major}.${minor}, ${LBF_RPM_SLURM_PACKAGE} < ${major}.${next_minor}")

set(release "1.slurm${major}.${minor}")
string(TIMESTAMP today "%a %b %d %Y" UTC)
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/changelog "* ${today} ${maintainer} - ${PROJECT_VERSION}-${release}
- See changelog.gz in the package's folder of documents
")

foreach(component IN LISTS components)
  set(package ${package_of_${component}})
  install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/licenses/${package} COMPONENT ${component}
          EXCLUDE_FROM_ALL)
  set(files ${config_of_${component}})
  list(TRANSFORM files PREPEND "%config(noreplace) ")
  string(TOUPPER ${component} upper)
  set(CPACK_RPM_${upper}_USER_FILELIST ${files} "%license ${CMAKE_INSTALL_FULL_DATADIR}/licenses/${package}/LICENSE")
  set(CPACK_RPM_${upper}_PACKAGE_NAME ${package})
  # A summary begins with a capital here.
  string(SUBSTRING "${summary_of_${component}}" 0 1 first)
  string(SUBSTRING "${summary_of_${component}}" 1 -1 rest)
  string(TOUPPER ${first} first)
  set(CPACK_RPM_${upper}_PACKAGE_SUMMARY "${first}${rest}")
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "${description_of_${component}}")
endforeach()

set(CPACK_RPM_COMPONENT_INSTALL ON)
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_VENDOR "${maintainer}")
set(CPACK_RPM_PACKAGE_RELEASE ${release})
set(CPACK_RPM_PACKAGE_RELEASE_DIST ON)
set(CPACK_RPM_PACKAGE_LICENSE Apache-2.0)
set(CPACK_RPM_PACKAGE_GROUP System/Daemons)
set(CPACK_RPM_CHANGELOG_FILE ${CMAKE_CURRENT_BINARY_DIR}/changelog)
# Nobody links to the plugin and to the capture, so the packages offer no libraries. An MPI of a module is no package that could
# be needed: lbf-calibrate's program finds it where the module is loaded.
set(CPACK_RPM_SPEC_MORE_DEFINE "%global __provides_exclude_from ^${CMAKE_INSTALL_FULL_LIBDIR}/
%global __requires_exclude ^libmpi
%global _build_id_links none
Packager: ${maintainer}")
# Folders of the system and of Slurm.
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION
    /etc/slurm /usr/lib/systemd /usr/lib/systemd/system /usr/lib/sysusers.d /usr/lib/tmpfiles.d /usr/libexec /usr/sbin
    /usr/share/bash-completion /usr/share/bash-completion/completions /usr/share/licenses
    /usr/share/man /usr/share/man/man1 /usr/share/man/man7 /usr/share/man/man8
    /var /var/spool /var/spool/lbf ${CMAKE_INSTALL_PREFIX}/${LBF_SLURM_PLUGIN_DIR})

set(CPACK_RPM_PLUGIN_PACKAGE_REQUIRES "${fits_slurm}, munge")
# The spool is the package's own: removed with it when it is empty. tmpfiles.d makes it where /var starts empty.
install(DIRECTORY DESTINATION /var/spool/lbf COMPONENT plugin EXCLUDE_FROM_ALL)
list(APPEND CPACK_RPM_PLUGIN_USER_FILELIST "%dir %attr(1777,root,root) /var/spool/lbf")

set(CPACK_RPM_DAEMON_PACKAGE_REQUIRES "munge, lbf-networks, systemd")
set(CPACK_RPM_DAEMON_PACKAGE_REQUIRES_POST systemd)
set(CPACK_RPM_DAEMON_POST_INSTALL_SCRIPT_FILE ${CMAKE_CURRENT_SOURCE_DIR}/rpm/lbfd.post)
set(CPACK_RPM_DAEMON_PRE_UNINSTALL_SCRIPT_FILE ${CMAKE_CURRENT_SOURCE_DIR}/rpm/lbfd.preun)
set(CPACK_RPM_DAEMON_POST_UNINSTALL_SCRIPT_FILE ${CMAKE_CURRENT_SOURCE_DIR}/rpm/lbfd.postun)

set(CPACK_RPM_TOOLS_PACKAGE_REQUIRES lbf-networks)

set(CPACK_RPM_NETWORKS_PACKAGE_ARCHITECTURE noarch)
