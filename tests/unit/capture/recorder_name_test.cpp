#include "spank_plugin/capture/recorder_name.h"

#include <gtest/gtest.h>

#include <string>

namespace lbf::capture::recorder_name_test {
namespace {

TEST(RecorderName, TheFamiliesThatAreKnown) {
  EXPECT_STREQ(recorder_name("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4"), "liblbf_capture_ompi.so");
  EXPECT_STREQ(recorder_name("Open MPI v5.0.7, package: Debian OpenMPI"), "liblbf_capture_ompi.so");
  EXPECT_STREQ(recorder_name("Open MPI v6.0.0rc2, package: Debian OpenMPI"), "liblbf_capture_ompi.so");
  EXPECT_STREQ(recorder_name("MPICH Version:      5.0.2\nMPICH Release date: "), "liblbf_capture_mpich.so");
  EXPECT_STREQ(recorder_name("MPICH Version:\t4.0.2\nMPICH Release date:\tThu Apr  7 12:34:45 CDT 2022"),
               "liblbf_capture_mpich.so");
}

// Debian 13's MPICH puts spaces before its number, Debian 12's a tab.
TEST(RecorderName, SpacesOrATabBeforeTheNumber) {
  EXPECT_STREQ(recorder_name("MPICH Version:      4.2.1\nMPICH Release date: Wed Apr 17"), "liblbf_capture_mpich.so");
}

TEST(RecorderName, OthersAreNotTakenForThese) {
  for (const char* version :
       {"", "MPICH", "MPICH Version:", "MPICH Version:      ", "MPICH Version:\t3.4.3", "MPICH Version:      40.1",
        "MPICH Version:      6.0.0\nMPICH Release date: ", "Open MPI v7.0.0, package: Debian OpenMPI",
        "Open MPI v3.1.6", "Open MPI v44.0", "Intel(R) MPI Library 2021.4", "MVAPICH Version: 4.0"}) {
    EXPECT_EQ(recorder_name(version), nullptr) << version;
  }
}

TEST(RecorderName, PeopleAreToldTheSame) {
  std::string known = kKnownLibraries;
  known.replace(known.find(", 5"), 2, " and ");
  std::string listed;
  for (const Family& family : kFamilies) {
    const std::string name = std::string(family.name).starts_with("Open MPI") ? "Open MPI " : "MPICH ";
    const std::string major = std::string(family.major, 1);
    listed += listed.find(name) != std::string::npos ? " and " + major : (listed.empty() ? "" : ", ") + name + major;
  }
  EXPECT_EQ(listed, known);
}

TEST(RecorderName, StandardAbi) {
  EXPECT_TRUE(is_standard_abi("/usr/lib/libmpi_abi.so.1"));
  EXPECT_TRUE(is_standard_abi("libmpi_abi.so"));
  EXPECT_FALSE(is_standard_abi("/opt/libmpi_abi.d/libmpi.so.40"));
  EXPECT_FALSE(is_standard_abi("/usr/lib/libmpi.so.40"));
  EXPECT_FALSE(is_standard_abi(""));
}

}  // namespace
}  // namespace lbf::capture::recorder_name_test