// What a killed lbf-run left behind is removed by the next one, and nothing that is in use.
#include "tools/run/owned_directory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "tests/support/temporary_directory.h"
#include "tools/run/run_daemon.h"

namespace lbf::tools::owned_directory_test {
namespace {

class OwnedDirectoryTest : public testing::Test {
 protected:
  // As a process that was killed leaves it.
  std::string leftover(const std::string& name) {
    std::string path = base() + "/" + name;
    std::filesystem::create_directory(path);
    std::ofstream(path + "/token") << "secret";
    return path;
  }
  static bool exists(const std::string& path) { return std::filesystem::exists(path); }
  const std::string& base() const { return directory_.path(); }
  test::TemporaryDirectory directory_;
};

TEST_F(OwnedDirectoryTest, LeftoversGoAndWhatIsOwnedStays) {
  const std::string left = leftover("lbf-run-aB3xyz");
  std::optional<OwnedDirectory> owned;
  {
    auto made = OwnedDirectory::make(base(), "lbf-run-");
    ASSERT_TRUE(made.ok()) << made.error().message;
    owned = std::move(*made);
  }
  std::ofstream(owned->path() + "/token") << "mine";
  remove_leftovers(base(), "lbf-run-");
  EXPECT_FALSE(exists(left));
  EXPECT_TRUE(exists(owned->path() + "/token"));
  const std::string path = owned->path();
  owned.reset();
  remove_leftovers(base(), "lbf-run-");
  EXPECT_FALSE(exists(path));
}

TEST_F(OwnedDirectoryTest, OtherNamesStay) {
  const std::string step = leftover("lbf-run-1000-12-0-3");
  const std::string other = leftover("lbf-run-abcde");
  const std::string rings = leftover("lbf-run-1000-abcdef");
  remove_leftovers(base(), "lbf-run-");
  EXPECT_TRUE(exists(step));
  EXPECT_TRUE(exists(other));
  EXPECT_TRUE(exists(rings));
  remove_leftovers(base(), "lbf-run-1000-");
  EXPECT_TRUE(exists(step));
  EXPECT_FALSE(exists(rings));
}

// An lbf-run of an earlier release has no lock on its directory.
TEST_F(OwnedDirectoryTest, ASocketThatAnswersAndALivingProcessAreInUse) {
  const std::string rings = leftover("lbf-run-aaaaaa");
  std::ofstream(rings + "/" + std::to_string(::getpid()) + ".7.ring") << "x";
  const std::string daemon = leftover("lbf-run-bbbbbb");
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, (daemon + "/lbfd.sock").c_str());
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(::listen(socket, 4), 0);
  remove_leftovers(base(), "lbf-run-");
  EXPECT_TRUE(exists(rings));
  EXPECT_TRUE(exists(daemon));
  ::close(socket);
  remove_leftovers(base(), "lbf-run-");
  EXPECT_FALSE(exists(daemon));
}

// The relay goes on when its lbf-run is killed: it has a lock of its own.
TEST_F(OwnedDirectoryTest, AnothersLockCounts) {
  const std::string rings = leftover("lbf-run-cccccc");
  const int lock = ::open(rings.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(::flock(lock, LOCK_SH), 0);
  remove_leftovers(base(), "lbf-run-");
  EXPECT_TRUE(exists(rings));
  ::close(lock);
}

// An lbf-run that was moved or removed left a link to nowhere.
TEST_F(OwnedDirectoryTest, NominalNetworksAreLinkedUnlessTheUserHasThem) {
  const auto leads_to = [&] { return std::filesystem::read_symlink(base() + "/nominal").string(); };
  std::filesystem::create_directory(base() + "/installed");
  link_nominal_networks("", base());
  EXPECT_FALSE(exists(base() + "/nominal"));
  link_nominal_networks("/nowhere", base());
  EXPECT_EQ(leads_to(), "/nowhere");
  link_nominal_networks(base() + "/installed", base());
  EXPECT_EQ(leads_to(), base() + "/installed");
  std::filesystem::remove(base() + "/nominal");
  std::filesystem::create_directory(base() + "/nominal");
  link_nominal_networks(base() + "/installed", base());
  EXPECT_FALSE(std::filesystem::is_symlink(base() + "/nominal"));
}

}  // namespace
}  // namespace lbf::tools::owned_directory_test
