# Debian's packages. Dependencies are dpkg-shlibdeps', and the one that no library shows: a SPANK plugin fits one release of
# Slurm only. What has PluginDir and its plugins: slurm-wlm-basic-plugins in Debian, slurm-smd in SchedMD's own packages.
set(LBF_DEB_SLURM_PACKAGE slurm-wlm-basic-plugins CACHE STRING "the package of Slurm that the plugin's one must fit")
set(fits_slurm "${LBF_DEB_SLURM_PACKAGE} (>= ${major}.${minor}), ${LBF_DEB_SLURM_PACKAGE} (<< ${major}.${next_minor}~)")

set(revision "1+slurm${major}.${minor}")
string(TIMESTAMP today "%a, %d %b %Y %H:%M:%S +0000" UTC)
foreach(component IN LISTS components)
  set(package ${package_of_${component}})
  file(CONFIGURE OUTPUT documents/${package}/changelog.Debian @ONLY CONTENT
"lbf (@PROJECT_VERSION@-@revision@) unstable; urgency=medium

  * See changelog.gz in this folder.

 -- @maintainer@  @today@
")
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/documents/${package}/changelog.Debian debian/copyright
          DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} COMPONENT ${component} EXCLUDE_FROM_ALL)

  # Control files: conffiles, and the maintainer scripts of debian/component/.
  list(JOIN config_of_${component} "\n" conffiles)
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/${component}/conffiles "${conffiles}\n")
  file(GLOB scripts CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/debian/${component}/*)
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_BINARY_DIR}/${component}/conffiles ${scripts})
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package})
  # The first line of a description is its summary.
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "${summary_of_${component}}\n${description_of_${component}}")
endforeach()

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${maintainer}")
set(CPACK_DEBIAN_PACKAGE_RELEASE ${revision})
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_PLUGIN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PLUGIN_PACKAGE_DEPENDS "${fits_slurm}, munge")
# At the end of a step srun runs lbf-report; without it the line says what to type.
set(CPACK_DEBIAN_PLUGIN_PACKAGE_RECOMMENDS lbf-tools)
# The capture asks the program for its MPI library: no package of one is needed, and the site's may be no package at all.
set(CPACK_DEBIAN_PLUGIN_PACKAGE_SUGGESTS "openmpi-bin | mpich")

set(CPACK_DEBIAN_DAEMON_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_DAEMON_PACKAGE_DEPENDS "munge, lbf-networks, systemd | systemd-standalone-sysusers | systemd-sysusers")

set(CPACK_DEBIAN_TOOLS_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS lbf-networks)
# lbf-run needs both on the hosts that it runs on; nobody wants a daemon on each login node for it.
set(CPACK_DEBIAN_TOOLS_PACKAGE_SUGGESTS "lbf-slurm-plugin, lbfd")

set(CPACK_DEBIAN_NETWORKS_PACKAGE_ARCHITECTURE all)
