// What is found of programs that have no ring, in a /proc made by hand.
#include "spank_plugin/relay/uncaptured_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temporary_directory.h"

namespace lbf::relay::uncaptured_program_test {
namespace {

using testing::HasSubstr;
using Why = UncapturedProgram::Why;

class UncapturedTest : public testing::Test {
 protected:
  void add(const std::string& pid, std::initializer_list<const char*> environment,
           std::initializer_list<const char*> libraries, const std::string& program) {
    const std::string folder = proc_.path() + "/" + pid;
    std::filesystem::create_directory(folder);
    std::ofstream words(folder + "/environ", std::ios::binary);
    for (const char* word : environment) words << word << '\0';
    std::ofstream maps(folder + "/maps");
    maps << "55d0c0a00000-55d0c0a01000 r--p 00000000 08:01 123                        /bin/x\n";
    for (const char* library : libraries)
      maps << "7f0000000000-7f0000001000 r-xp 00000000 08:01 124                        " << library << "\n";
    std::filesystem::create_symlink(program, folder + "/exe");
  }
  std::optional<UncapturedProgram> found() { return find_uncaptured_program(proc_.path(), "/dev/shm/r"); }

  test::TemporaryDirectory proc_;
};

TEST_F(UncapturedTest, ProgramsOfOthersAndWithoutMpiSayNothing) {
  EXPECT_FALSE(found().has_value());
  add("self", {"LBF_CAPTURE_DIR=/dev/shm/r"}, {"/lib/libmpi.so.40"}, "/bin/a");
  add("10", {"LBF_CAPTURE_DIR=/dev/shm/r2"}, {"/lib/libmpi.so.40"}, "/bin/a");
  add("11", {"XLBF_CAPTURE_DIR=/dev/shm/r"}, {"/lib/libmpi.so.40"}, "/bin/a");
  add("12", {"A=B", "LBF_CAPTURE_DIR=/dev/shm/r", "C=D"}, {"/lib/libopen-rte.so.40", "/lib/libmpile.so"},
      "/bin/mpirun");
  EXPECT_FALSE(found().has_value());
}

TEST_F(UncapturedTest, EachCauseHasItsName) {
  add("20", {"PMIX_RANK=0", "LBF_CAPTURE_DIR=/dev/shm/r"}, {"/lib/libc.so.6"}, "/bin/sh");
  ASSERT_TRUE(found().has_value());
  EXPECT_EQ(found()->why, Why::kNoMpi);
  EXPECT_THAT(describe(*found()), HasSubstr("sh was started as a rank, but has no MPI library loaded"));
  add("21", {"PMI_RANK=0", "LBF_CAPTURE_DIR=/dev/shm/r"}, {"/usr/lib/libmpich.so.12", "/lib/liblbf_capture.so"},
      "/x/app");
  EXPECT_EQ(found()->why, Why::kPastPreload);
  EXPECT_EQ(found()->program, "app");
  EXPECT_EQ(found()->library, "libmpich.so.12");
  EXPECT_THAT(describe(*found()), HasSubstr("goes past LD_PRELOAD"));
}

TEST_F(UncapturedTest, ACaptureThatIsOffHasSaidWhy) {
  add("40", {"LBF_CAPTURE_DIR=/dev/shm/r"},
      {"/lib/libmpi.so.40", "/lib/liblbf_capture.so", "/lib/liblbf_capture_ompi.so"}, "/x/app");
  EXPECT_EQ(found()->why, Why::kCaptureOff);
  EXPECT_THAT(describe(*found()), HasSubstr("the capture of app is off"));
}

TEST_F(UncapturedTest, AReplacedPreloadIsNoWrapper) {
  add("30", {"LBF_CAPTURE_DIR=/dev/shm/r"}, {"/lib/libmpi.so.40.30.4"}, "/usr/bin/python3.11");
  ASSERT_TRUE(found().has_value());
  EXPECT_EQ(found()->why, Why::kPreloadReplaced);
  EXPECT_THAT(describe(*found()), HasSubstr("python3.11 has libmpi.so.40.30.4 loaded, but not the capture"));
}

// srun --container, pyxis: ld.so finds no capture below the container's root folder, and the program runs without.
TEST_F(UncapturedTest, AContainerWithoutLbfIsToldWhatToMount) {
  const std::string lib = proc_.path() + "/lib";
  std::filesystem::create_directory(lib);
  std::ofstream(lib + "/liblbf_capture.so").flush();
  const std::string preload = "LD_PRELOAD=/x/libother.so:" + lib + "/liblbf_capture.so";
  add("50", {"A=B", preload.c_str(), "LBF_CAPTURE_DIR=/dev/shm/r"}, {"/lib/libmpi.so.40"}, "/x/app");
  EXPECT_EQ(found()->why, Why::kPreloadReplaced) << "its root folder cannot be read";
  const std::string root = proc_.path() + "/50/root";
  std::filesystem::create_directories(root + lib);
  EXPECT_EQ(found()->why, Why::kNotInContainer);
  EXPECT_EQ(found()->missing, lib);
  EXPECT_THAT(describe(*found()), HasSubstr("app runs in a container that lacks " + lib + ":"));
  std::ofstream(root + lib + "/liblbf_capture.so").flush();
  EXPECT_EQ(found()->why, Why::kPreloadReplaced) << "it is there";
}

// job_container/tmpfs: the plugin has the task find the rings in the relay's root folder.
TEST_F(UncapturedTest, RingsBehindTheRelayAreNotMissing) {
  const std::string rings = proc_.path() + "/rings";
  std::filesystem::create_directory(rings);
  add("61", {("LBF_CAPTURE_DIR=/proc/" + std::to_string(::getpid()) + "/root" + rings).c_str()}, {"/lib/libmpi.so.40"},
      "/x/app");
  std::filesystem::create_directory(proc_.path() + "/61/root");
  const auto program = find_uncaptured_program(proc_.path(), rings);
  ASSERT_TRUE(program.has_value());
  EXPECT_EQ(program->why, Why::kPreloadReplaced);
}

TEST_F(UncapturedTest, AContainerWithoutTheRingsAsWell) {
  const std::string rings = proc_.path() + "/rings";
  std::filesystem::create_directory(rings);
  add("60", {("LBF_CAPTURE_DIR=" + rings).c_str()},
      {"/lib/libmpi.so.40", "/lib/liblbf_capture.so", "/lib/liblbf_capture_ompi.so"}, "/x/app");
  std::filesystem::create_directory(proc_.path() + "/60/root");
  const auto program = find_uncaptured_program(proc_.path(), rings);
  ASSERT_TRUE(program.has_value());
  EXPECT_EQ(program->why, Why::kNotInContainer);
  EXPECT_EQ(program->missing, proc_.path());
}

}  // namespace
}  // namespace lbf::relay::uncaptured_program_test
