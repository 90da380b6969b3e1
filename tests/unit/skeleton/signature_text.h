// Signatures as text, for comparing what a skeleton executes with what it was made from.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "skeleton/scale.h"
#include "skeleton/signature.h"

namespace lbf::skeleton_test {

// Exchanges, each as a text of everything but its times, and how often they are executed.
using Counts = std::map<std::string, std::uint64_t>;

// kCaptured: as an MPI program can be seen to do it: a communicator's making is the reduction that skeletons
// make instead, requests that one call completes are in no order, sizes of v-collectives are those for each
// peer.
enum class Seen : std::uint8_t { kExactly, kCaptured };

Counts exchanges_of(const skeleton::Signature& signature, Seen seen = Seen::kExactly);
Counts exchanges_of(const skeleton::Signature& signature, const skeleton::ScaledSignature& scaled,
                    Seen seen = Seen::kExactly);

// How often each symbol is executed.
void count_symbols(const skeleton::LoopBodies& bodies, const skeleton::Elements& elements, std::uint64_t times,
                   std::map<std::uint32_t, std::uint64_t>& counts);

// One line for each exchange that they have not equally often; empty: none.
std::string difference(const Counts& got, const Counts& wanted);

}  // namespace lbf::skeleton_test
