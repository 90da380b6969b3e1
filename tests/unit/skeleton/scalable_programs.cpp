#include "tests/unit/skeleton/scalable_programs.h"

#include <array>
#include <functional>

namespace lbf::skeleton_test {
namespace {

constexpr int kIterations = 30;
constexpr Seconds kWork_s = 8e-3;  // of one iteration, all ranks

// Posts all receives, starts all sends, completes all: as halo exchanges do.
void halo(EventProgram& program, const std::function<std::vector<Rank>(Rank)>& neighbours, Bytes bytes,
          Seconds work) {
  for (Rank me = 0; me < program.ranks(); ++me) {
    std::uint32_t request = 100;
    Seconds before = work;
    const std::vector<Rank> peers = neighbours(me);
    for (const Rank peer : peers) {
      if (peer >= 0) program.irecv(me, peer, request, 0, before), before = 0;
      ++request;
    }
    for (const Rank peer : peers) {
      if (peer >= 0) program.isend(me, peer, bytes, request, 0, before), before = 0;
      ++request;
    }
    request = 100;
    bool first = true;
    for (const Rank peer : peers) {
      if (peer >= 0) program.end_recv(me, peer, bytes, request, 0, first), first = false;
      ++request;
    }
    for (const Rank peer : peers) {
      if (peer >= 0) program.wait(me, request, first), first = false;
      ++request;
    }
  }
}

void iterate(EventProgram& program, const std::function<void()>& body) {
  program.all(CollectiveOp::kBcast, 64);
  for (int i = 0; i < kIterations; ++i) body();
  program.all(CollectiveOp::kReduce, 8, 0, 1e-6);
  program.exit(1e-6);
}

EventProgram chain(Rank p) {
  EventProgram program(p);
  iterate(program, [&] {
    halo(
        program,
        [&](Rank r) {
          return std::vector<Rank>{r - 1, r + 1 < p ? r + 1 : -1};
        },
        4096, kWork_s / p);
    program.all(CollectiveOp::kAllreduce, 8);
  });
  return program;
}

// 4 = 2 x 2, 6 = 3 x 2, 9 = 3 x 3, ...: the longest first.
std::array<Rank, 2> square(Rank p) {
  Rank a = 1;
  for (Rank d = 1; d * d <= p; ++d) {
    if (p % d == 0) a = d;
  }
  return {p / a, a};
}

EventProgram stencil_2d(Rank p, bool around) {
  const auto [rows, columns] = square(p);
  EventProgram program(p);
  const auto at = [&](Rank x, Rank y) {
    if (around) return (x + rows) % rows * columns + (y + columns) % columns;
    return x < 0 || y < 0 || x >= rows || y >= columns ? -1 : x * columns + y;
  };
  iterate(program, [&] {
    halo(
        program,
        [&](Rank r) {
          const Rank x = r / columns;
          const Rank y = r % columns;
          return std::vector<Rank>{at(x - 1, y), at(x + 1, y), at(x, y - 1), at(x, y + 1)};
        },
        static_cast<Bytes>(8 * 720 / columns), kWork_s / p);
    program.all(CollectiveOp::kAllreduce, 16);
  });
  return program;
}

EventProgram stencil_3d(Rank p) {
  // The tests use 8 = 2 x 2 x 2, 27 = 3 x 3 x 3, 12 = 3 x 2 x 2.
  std::array<Rank, 3> n{p, 1, 1};
  for (Rank a = 1; a <= p; ++a) {
    for (Rank b = a; p % a == 0 && b <= p / a; ++b) {
      if (p / a % b != 0 || p / a / b < b) continue;
      const std::array<Rank, 3> shape{p / a / b, b, a};
      if (shape < n) n = shape;
    }
  }
  EventProgram program(p);
  iterate(program, [&] {
    halo(
        program,
        [&](Rank r) {
          std::vector<Rank> peers;
          const std::array<Rank, 3> me{r / (n[1] * n[2]), r / n[2] % n[1], r % n[2]};
          for (std::size_t dim = 0; dim < 3; ++dim) {
            for (const Rank step : {-1, 1}) {
              std::array<Rank, 3> to = me;
              to[dim] = (to[dim] + step + n[dim]) % n[dim];
              peers.push_back((to[0] * n[1] + to[1]) * n[2] + to[2]);
            }
          }
          return peers;
        },
        2048, kWork_s / p);
  });
  return program;
}

EventProgram red_black(Rank p) {
  EventProgram program(p);
  iterate(program, [&] {
    for (Rank r = 0; r < p; ++r) {
      const Rank right = r + 1 < p ? r + 1 : -1;
      if (r % 2 == 0) {
        if (right >= 0) program.send(r, right, 512, 1, kWork_s / p), program.recv(r, right, 512, 2);
        if (r > 0)
          program.recv(r, r - 1, 512, 1, right < 0 ? kWork_s / p : 0), program.send(r, r - 1, 512, 2);
      } else {
        program.recv(r, r - 1, 512, 1, kWork_s / p);
        program.send(r, r - 1, 512, 2);
        if (right >= 0) program.send(r, right, 512, 1), program.recv(r, right, 512, 2);
      }
    }
  });
  return program;
}

// A sum up a binomial tree, and its result down again.
EventProgram tree(Rank p) {
  EventProgram program(p);
  iterate(program, [&] {
    for (Rank r = 0; r < p; ++r) {
      Seconds work = kWork_s;
      for (Rank bit = 1; bit < p; bit *= 2) {
        if (r % (2 * bit) == bit) program.send(r, r - bit, 1024, 3, work), work = 0;
        if (r % (2 * bit) == 0 && r + bit < p) program.recv(r, r + bit, 1024, 3, work), work = 0;
      }
      Rank top = 1;
      while (top < p) top *= 2;
      for (Rank bit = top / 2; bit > 0; bit /= 2) {
        if (r % (2 * bit) == bit) program.recv(r, r - bit, 1024, 4);
        if (r % (2 * bit) == 0 && r + bit < p) program.send(r, r + bit, 1024, 4);
      }
    }
  });
  return program;
}

EventProgram binary_tree(Rank p) {
  EventProgram program(p);
  iterate(program, [&] {
    for (Rank r = 0; r < p; ++r) {
      if (r > 0) program.recv(r, (r - 1) / 2, 256, 3, 1e-4);
      for (const Rank child : {2 * r + 1, 2 * r + 2}) {
        if (child < p) program.send(r, child, 256, 3, r == 0 && child == 1 ? 1e-4 : 0);
      }
    }
  });
  return program;
}

// Recursive doubling; its messages grow with the step.
EventProgram doubling(Rank p) {
  EventProgram program(p);
  iterate(program, [&] {
    for (Rank r = 0; r < p; ++r) {
      for (Rank bit = 1; bit < p; bit *= 2) {
        program.irecv(r, r ^ bit, 7);
        program.send(r, r ^ bit, 64 * static_cast<Bytes>(bit));
        program.end_recv(r, r ^ bit, 64 * static_cast<Bytes>(bit), 7);
      }
    }
  });
  return program;
}

EventProgram dissemination(Rank p) {
  EventProgram program(p);
  iterate(program, [&] {
    for (Rank r = 0; r < p; ++r) {
      for (Rank step = 1; step < p; step *= 2) {
        program.irecv(r, (r - step + p) % p, 7);
        program.send(r, (r + step) % p, 0);
        program.end_recv(r, (r - step + p) % p, 0, 7);
      }
    }
  });
  return program;
}

// 1/p of a fixed size to each other rank.
EventProgram all_to_all(Rank p) {
  EventProgram program(p);
  const Bytes bytes = static_cast<Bytes>(840 * 64 / p);
  iterate(program, [&] {
    for (Rank r = 0; r < p; ++r) {
      for (Rank turn = 1; turn < p; ++turn)
        program.irecv(r, (r - turn + p) % p, static_cast<std::uint32_t>(turn));
      for (Rank turn = 1; turn < p; ++turn)
        program.isend(r, (r + turn) % p, bytes, static_cast<std::uint32_t>(p + turn));
      for (Rank turn = 1; turn < p; ++turn)
        program.end_recv(r, (r - turn + p) % p, bytes, static_cast<std::uint32_t>(turn), 0, turn == 1);
      for (Rank turn = 1; turn < p; ++turn) program.wait(r, static_cast<std::uint32_t>(p + turn), false);
    }
  });
  return program;
}

EventProgram master(Rank p) {
  EventProgram program(p);
  iterate(program, [&] {
    for (Rank worker = 1; worker < p; ++worker) program.send(0, worker, 4096, 1, worker == 1 ? 1e-3 : 0);
    for (Rank worker = 1; worker < p; ++worker) {
      program.recv(worker, 0, 4096, 1);
      program.send(worker, 0, 128, 2, 5e-3);
    }
    for (Rank worker = 1; worker < p; ++worker) program.recv(0, worker, 128, 2);
  });
  return program;
}

EventProgram collectives(Rank p) {
  EventProgram program(p);
  const auto bytes = [&](Bytes all) { return all / static_cast<Bytes>(p); };
  iterate(program, [&] {
    program.all(CollectiveOp::kAlltoall, bytes(8 * 3600), 0, kWork_s / p);
    program.all(CollectiveOp::kAllreduce, 800);
    program.all(CollectiveOp::kBcast, 256, p - 1);
    for (Rank r = 0; r < p; ++r) {
      program.collective(r, CollectiveOp::kAllgatherv, bytes(720), 0, 0, 0,
                         std::vector<std::uint64_t>(static_cast<std::size_t>(p), bytes(720)));
    }
  });
  return program;
}

// A sum, and work while it is under way.
EventProgram overlapped(Rank p) {
  EventProgram program(p);
  iterate(program, [&] {
    for (Rank r = 0; r < p; ++r) {
      program.icollective(r, CollectiveOp::kAllreduce, 4096, 100, kWork_s / p);
      program.wait(r, 100, true, kWork_s / p);
    }
  });
  return program;
}

// A matrix in rows and columns: sums along both, and its transposition.
EventProgram matrix(Rank p) {
  const auto [rows, columns] = square(p);
  EventProgram program(p);
  std::vector<std::vector<Rank>> row(static_cast<std::size_t>(rows)),
      column(static_cast<std::size_t>(columns));
  for (Rank r = 0; r < p; ++r) {
    row[static_cast<std::size_t>(r / columns)].push_back(r);
    column[static_cast<std::size_t>(r % columns)].push_back(r);
  }
  std::uint32_t comm = 0;
  for (const auto* lists : {&row, &column}) {
    for (const auto& members : *lists) program.make_comm(++comm, members);
  }
  iterate(program, [&] {
    for (Rank r = 0; r < p; ++r) {
      program.collective(r, CollectiveOp::kAllreduce, static_cast<Bytes>(720 / columns * 8), 0, kWork_s / p,
                         static_cast<std::uint32_t>(1 + r / columns));
      program.collective(r, CollectiveOp::kBcast, 64, 0, 0,
                         static_cast<std::uint32_t>(1 + rows + r % columns));
    }
  });
  return program;
}

// Ten times ten messages around and an allreduce.
EventProgram nested(Rank p) {
  EventProgram program(p);
  for (int outer = 0; outer < 10; ++outer) {
    for (int inner = 0; inner < 10; ++inner) {
      for (Rank r = 0; r < p; ++r) {
        if (r == 0) program.send(0, 1, 8192, 5, kWork_s);
        program.recv(r, (r - 1 + p) % p, 8192, 5);
        if (r != 0) program.send(r, (r + 1) % p, 8192, 5, kWork_s);
      }
    }
    program.all(CollectiveOp::kAllreduce, 8);
  }
  program.exit();
  return program;
}

// Twice as many iterations with twice as many ranks.
EventProgram rounds(Rank p) {
  EventProgram program(p);
  for (Rank i = 0; i < 10 * p; ++i) program.all(CollectiveOp::kAllreduce, 8, 0, 1e-4);
  program.exit();
  return program;
}

}  // namespace

EventProgram ring_of(Rank p, Bytes bytes, int iterations, Seconds work) {
  EventProgram program(p);
  for (int i = 0; i < iterations; ++i) {
    for (Rank r = 0; r < p; ++r) {
      if (r == 0) program.send(0, 1 % p, bytes, 5, work);
      program.recv(r, (r - 1 + p) % p, bytes, 5, r == 0 ? 0 : work);
      if (r != 0) program.send(r, (r + 1) % p, bytes, 5);
    }
  }
  program.exit();
  return program;
}

EventProgram ring(Rank p) {
  return ring_of(p, 1024, 50, kWork_s);
}

const std::vector<ScalableApplication>& scalable_applications() {
  static const std::vector<ScalableApplication> all{
      {"ring", ring, {3, 5}, {2, 4, 8, 16}},
      {"chain", chain, {3, 4}, {2, 6, 16}},
      {"stencil_2d", [](Rank p) { return stencil_2d(p, false); }, {6, 16}, {4, 9, 12, 25}},
      {"stencil_2d_around", [](Rank p) { return stencil_2d(p, true); }, {6, 16}, {4, 9, 12, 20}},
      {"stencil_3d_around", stencil_3d, {8, 27}, {12, 18, 36}},
      {"red_black", red_black, {4, 5}, {2, 7, 8}},
      {"tree", tree, {4, 6}, {2, 3, 8, 13}},
      {"binary_tree", binary_tree, {3, 8}, {2, 5, 15}},
      {"doubling", doubling, {4, 8}, {2, 16}},
      {"overlapped", overlapped, {3, 4}, {2, 6, 8}},
      {"dissemination", dissemination, {4, 6}, {3, 8, 11}},
      {"all_to_all", all_to_all, {4, 6}, {3, 5, 10}},
      {"master", master, {3, 5}, {2, 4, 9}},
      {"collectives", collectives, {4, 6}, {2, 3, 9}},
      {"matrix", matrix, {6, 16}, {4, 9, 12}},
      {"rounds", rounds, {2, 5}, {3, 7}},
      {"nested", nested, {3, 5}, {2, 4, 8}},
  };
  return all;
}

}  // namespace lbf::skeleton_test
