// Names of rings, and whose processes they are where a container has numbers of its own.
#include "spank_plugin/relay/ring_directory.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "tests/support/temporary_directory.h"

namespace lbf::relay::ring_directory_test {
namespace {

TEST(RingName, HasNumbersAndTheNamespaceOfTheseNumbers) {
  const auto plain = parse_ring_name("12.13.ring");
  ASSERT_TRUE(plain.has_value());
  EXPECT_EQ(plain->pid, 12);
  EXPECT_EQ(plain->pid_namespace, 0U);
  const auto contained = parse_ring_name("1.1.4026532198.ring");
  ASSERT_TRUE(contained.has_value());
  EXPECT_EQ(contained->pid, 1);
  EXPECT_EQ(contained->pid_namespace, 4026532198U);
  for (const char* name : {"", ".ring", "12.ring", "1.1.ring", "12.1.ring", "0.0.5.ring", "12.13.x.ring", "12.13..ring",
                           "12.13.5.6.ring", "12.13.5", ".12.13.new", "-2.3.ring", "a.3.ring", "step.json"})
    EXPECT_FALSE(parse_ring_name(name).has_value()) << name;
}

TEST(NumberInOwnNamespace, IsTheLastOfSeveral) {
  EXPECT_EQ(number_in_own_namespace("Name:\tx\nNSpid:\t4711\t7\nNSpgid:\t4711\t7\n"), 7);
  EXPECT_EQ(number_in_own_namespace("Name:\tx\nNSpid:\t4711\t9\t1\n"), 1);
  EXPECT_EQ(number_in_own_namespace("Name:\tx\nNSpid:\t4711\n"), 0);
  EXPECT_EQ(number_in_own_namespace("Name:\tx\n"), 0);
}

// The first process of a PID namespace of its own, until this object ends. 0: this user may make none here.
class Contained {
 public:
  Contained() {
    int ends[2];
    if (::pipe(ends) != 0) return;
    parent_ = ::fork();
    if (parent_ == 0) {
      pid_t inner = 0;
      if (::unshare(CLONE_NEWPID) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWPID) == 0) inner = ::fork();
      if (inner == 0 && ::getpid() == 1) {
        for (;;) ::pause();
      }
      [[maybe_unused]] const ssize_t put = ::write(ends[1], &inner, sizeof inner);
      ::pause();
      ::_exit(0);
    }
    [[maybe_unused]] const ssize_t got = ::read(ends[0], &pid_, sizeof pid_);
    ::close(ends[0]);
    ::close(ends[1]);
  }
  ~Contained() {
    end();
    if (parent_ > 0) {
      ::kill(parent_, SIGKILL);
      ::waitpid(parent_, nullptr, 0);
    }
  }
  void end() {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t parent_ = -1;
  pid_t pid_ = 0;
};

TEST(RingDirectory, ProcessesOfContainersHaveTheirNumbersHere) {
  const Contained a;
  const Contained b;
  if (a.pid() <= 0 || b.pid() <= 0) GTEST_SKIP() << "no PID namespaces for this user";
  const test::TemporaryDirectory folder;
  const auto name_of = [](const Contained& process) {
    return "1.1." + std::to_string(pid_namespace_of(std::to_string(process.pid()))) + ".ring";
  };
  for (const std::string& name : {name_of(a), name_of(b), std::string("1.1.77.ring"), std::string("9.9.77.ring")})
    std::ofstream(folder.path() + "/" + name) << "x";
  auto directory = RingDirectory::open(folder.path());
  ASSERT_TRUE(directory.ok());
  std::map<std::string, std::int32_t> pids;
  for (int look = 0; look < 2; ++look) {
    for (const RingDirectory::Ring& ring : (*directory)->list(10)) {
      const auto known = pids.try_emplace(ring.name, ring.pid);
      EXPECT_EQ(known.first->second, ring.pid) << "the same at each look";
    }
  }
  EXPECT_EQ(pids[name_of(a)], a.pid());
  EXPECT_EQ(pids[name_of(b)], b.pid());
  EXPECT_LT(pids["1.1.77.ring"], 0) << "gone";
  EXPECT_LT(pids["9.9.77.ring"], 0);
  EXPECT_NE(pids["1.1.77.ring"], pids["9.9.77.ring"]);
}

}  // namespace
}  // namespace lbf::relay::ring_directory_test
