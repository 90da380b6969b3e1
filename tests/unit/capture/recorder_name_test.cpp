#include "spank_plugin/capture/recorder_name.h"

#include <gtest/gtest.h>

#include <string>

namespace lbf::capture::recorder_name_test {
namespace {

void expect_choice(const char* version, Exports exports, const char* file, Proof proof) {
  const RecorderChoice choice = choose_recorder(version, exports);
  EXPECT_STREQ(choice.file, file) << version;
  EXPECT_EQ(choice.proof, proof) << version;
}

TEST(RecorderName, TheFamiliesThatAreKnown) {
  for (const char* version :
       {"Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4", "Open MPI v5.0.7, package: Debian OpenMPI",
        "Open MPI v6.0.0rc2, package: Debian OpenMPI"})
    expect_choice(version, Exports::kOpenMpi, kOpenMpiRecorder, Proof::kListed);
  for (const char* version : {"MPICH Version:      5.0.2\nMPICH Release date: ",
                              "MPICH Version:\t4.0.2\nMPICH Release date:\tThu Apr  7 12:34:45 CDT 2022"})
    expect_choice(version, Exports::kOther, kMpichRecorder, Proof::kListed);
}

// Debian 13's MPICH puts spaces before its number, Debian 12's a tab.
TEST(RecorderName, SpacesOrATabBeforeTheNumber) {
  expect_choice("MPICH Version:      4.2.1\nMPICH Release date: Wed Apr 17", Exports::kOther, kMpichRecorder,
                Proof::kListed);
}

TEST(RecorderName, OthersHaveToPassTheSelfTestOfTheirFamily) {
  for (const char* version :
       {"", "MPICH", "MPICH Version:", "MPICH Version:      ", "MPICH Version:\t3.4.3", "MPICH Version:      40.1",
        "MPICH Version:      6.0.0\nMPICH Release date: ", "Intel(R) MPI Library 2021.4", "MVAPICH Version: 4.0",
        "MPI VERSION    : CRAY MPICH version 8.1.28.29 (ANL base 3.4a2)"})
    expect_choice(version, Exports::kOther, kMpichRecorder, Proof::kSelfTest);
  for (const char* version : {"Open MPI v7.0.0, package: Debian OpenMPI", "Open MPI v3.1.6", "Open MPI v44.0", ""})
    expect_choice(version, Exports::kOpenMpi, kOpenMpiRecorder, Proof::kSelfTest);
}

TEST(RecorderName, TheStandardAbiIsTheSameInEveryLibrary) {
  for (const char* version :
       {"Open MPI v6.0.0rc2, package: Debian OpenMPI", "MPICH Version:      5.0.2", "MPICH 6", ""})
    expect_choice(version, Exports::kStandardAbi, kAbiRecorder, Proof::kListed);
}

}  // namespace
}  // namespace lbf::capture::recorder_name_test
