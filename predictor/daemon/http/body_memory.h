// BodyMemory: the memory of request bodies. A body gets it as its bytes come, not as it announced them. What all
// bodies take is bounded, and so is what those of one user take: above a bound a body waits, unread, and its
// connection slows the sender down.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "base/units.h"

namespace lbf::daemon {

// Bodies that are half read must not wait for each other: where every body that holds memory waits for more, the one
// that began first gets it all the same. So each bound can be passed by one body.
// REQUIRES: used by one thread.
class BodyMemory {
 public:
  BodyMemory(Bytes limit_bytes, Bytes user_limit_bytes)
      : limit_bytes_(limit_bytes), user_limit_bytes_(user_limit_bytes) {}

  using Body = std::uint64_t;

  // A body of USER's that holds nothing yet.
  Body open(const std::string& user);
  // Calls `then` once the body may hold `bytes` in all: at once, or in a later call of another body's.
  // REQUIRES: the last call's `then` was called.
  void grow(Body body, Bytes bytes, std::function<void()> then);
  // It is read. What it holds comes back without anybody's doing: others can wait for it.
  void complete(Body body);
  // Gives back what it holds; a `then` that waits is forgotten.
  void close(Body body);
  // Forgets all that wait.
  void forget_waiting();

  Bytes held_bytes() const { return total_.held; }

 private:
  // Of all bodies, or of one user's.
  struct Sum {
    Bytes held = 0;
    Bytes complete = 0;  // of it, in bodies that are read
  };
  struct Entry {
    std::string user;
    Bytes held = 0;
    Bytes wanted = 0;
    bool is_complete = false;
    std::function<void()> then = {};
  };

  static bool has_room(const Sum& sum, Bytes more, Bytes limit, bool is_oldest);
  std::function<void()> grant(Entry& entry);
  void serve();

  const Bytes limit_bytes_;
  const Bytes user_limit_bytes_;
  Body next_ = 0;
  std::map<Body, Entry> entries_;  // the oldest first
  std::map<std::string, Sum> users_;
  Sum total_;
  std::size_t waiting_ = 0;
};

}  // namespace lbf::daemon
