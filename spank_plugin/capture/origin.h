// Origin: what names this process to the relay, beside its number; read once, before MPI and the program can change it.
//
// Place in the event's way: beside it, at the start (process.cpp). The relay could read the same in /proc as long as
// the process lives and leaves its environment alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "spank_plugin/capture/ring.h"

namespace lbf::capture {

struct Origin {
  std::uint64_t pid_namespace = 0;          // its inode; 0: the machine's first one, or not known
  char launch[ring::kMaxLaunchBytes] = {};  // ring::Header::launch
};

// Of this process.
void read_origin(Origin& origin) noexcept;
// Those of NAMES that the environment has into `words`: "NAME=VALUE", a NUL behind each. One that does not fit is left
// out.
void copy_variables(const char* const* names, std::size_t count, char* words, std::size_t size) noexcept;
// How many ranks share this node with this one, itself included, as far as its launcher says; else its processors.
std::uint32_t ranks_on_node() noexcept;

}  // namespace lbf::capture
