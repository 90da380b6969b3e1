#include "tests/unit/skeleton/random_program.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>

namespace lbf::skeleton_test {
namespace {

class Maker {
 public:
  Maker(std::uint64_t seed, const RandomProgramOptions& options)
      : random_(seed), options_(options), program_(options.ranks > 0 ? options.ranks : pick(2, 8)) {
    std::vector<Rank> world(static_cast<std::size_t>(program_.ranks()));
    std::iota(world.begin(), world.end(), 0);
    groups_.push_back(world);
    // Rows of a grid, or any subset.
    if (one_in(2)) {
      const std::size_t half = world.size() / 2;
      add_group({world.begin(), world.begin() + static_cast<std::ptrdiff_t>(half)});
      add_group({world.begin() + static_cast<std::ptrdiff_t>(half), world.end()});
    }
    if (one_in(2)) {
      std::shuffle(world.begin(), world.end(), random_);
      world.resize(static_cast<std::size_t>(pick(1, program_.ranks())));
      add_group(world);
    }
  }

  EventProgram make() {
    const int statements = pick(2, 6);
    for (int i = 0; i < statements; ++i) statement(0);
    program_.exit(work());
    return std::move(program_);
  }

 private:
  using Statement = std::function<void()>;

  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  bool one_in(int n) { return pick(1, n) == 1; }
  Seconds work() { return std::uniform_real_distribution<double>(0, options_.work_s)(random_); }
  void add_group(const std::vector<Rank>& members) {
    program_.make_comm(static_cast<std::uint32_t>(groups_.size()), members);
    groups_.push_back(members);
  }

  // A loop of statements, the same ones in each iteration; or one of them.
  void statement(int depth) { make_statement(depth)(); }

  Statement make_statement(int depth) {
    if (depth < 3 && one_in(depth == 0 ? 1 : 4)) {
      std::vector<Statement> body;
      const int length = pick(1, 4);
      for (int i = 0; i < length; ++i) body.push_back(make_statement(depth + 1));
      const int iterations = pick(1, depth == 0 ? options_.most_iterations : 5);
      return [body, iterations] {
        for (int i = 0; i < iterations; ++i) {
          for (const Statement& each : body) each();
        }
      };
    }
    switch (pick(0, 9)) {
      case 0:
        return message();
      case 1:
        return shift();
      case 2:
        return posted_ahead();
      case 3:
        return pipeline();
      case 4:
        return gather_from_any();
      case 5:
        return nonblocking_collective();
      case 6:
        return duplicated();
      case 7:
        return vector_collective();
      case 8:
        return irregular();
      default:
        return collective();
    }
  }

  std::uint32_t group() { return static_cast<std::uint32_t>(pick(0, static_cast<int>(groups_.size()) - 1)); }
  Bytes size() { return one_in(3) ? 0 : 8 * static_cast<Bytes>(pick(1, 3000)); }

  Statement message() {
    const std::uint32_t comm = group();
    const std::vector<Rank>& members = groups_[comm];
    if (members.size() < 2) return collective();
    const std::size_t from = static_cast<std::size_t>(pick(0, static_cast<int>(members.size()) - 1));
    const std::size_t to =
        (from + static_cast<std::size_t>(pick(1, static_cast<int>(members.size()) - 1))) % members.size();
    const Rank a = members[from];
    const Rank b = members[to];
    const Bytes bytes = size();
    const bool probed = one_in(4);
    return [=, this] {
      program_.send(a, b, bytes, 1, work(), comm);
      if (probed) {
        Event e;
        e.kind = EventKind::kProbe;
        e.flags = kFlagCallBegin;
        e.function = 1;
        e.peer = a;
        e.tag = 1;
        e.comm = comm;
        program_.event(b, e);
      }
      program_.recv(b, a, bytes, 1, work(), comm);
    };
  }

  // Every member sends to the one `step` further on; one Waitall, or the sends' wait later.
  Statement shift() {
    const std::uint32_t comm = group();
    const std::size_t n = groups_[comm].size();
    const std::size_t step = static_cast<std::size_t>(pick(0, static_cast<int>(n) - 1));
    const Bytes bytes = size();
    const bool together = one_in(2);
    return [=, this] {
      const std::vector<Rank>& members = groups_[comm];
      for (std::size_t i = 0; i < n; ++i) {
        const Rank me = members[i];
        const Rank from = members[(i + n - step) % n];
        program_.irecv(me, from, 1, 2, work(), comm);
        program_.isend(me, members[(i + step) % n], bytes, 2, 2, work(), comm);
        program_.end_recv(me, from, bytes, 1, 2);
        program_.wait(me, 2, !together, together ? 0 : work());
      }
    };
  }

  // Each receive is posted before the one before it ends: a request is always under way.
  Statement posted_ahead() {
    const int iterations = pick(1, 12);
    const Bytes bytes = size();
    return [=, this] {
      const Rank n = program_.ranks();
      for (Rank me = 0; me < n; ++me) {
        const Rank from = (me + n - 1) % n;
        program_.irecv(me, from, 10, 3);
        for (int i = 0; i < iterations; ++i) {
          const std::uint32_t current = 10 + static_cast<std::uint32_t>(i % 2);
          if (i + 1 < iterations) program_.irecv(me, from, 21 - current, 3, work());
          program_.isend(me, (me + 1) % n, bytes, 12, 3, work());
          program_.end_recv(me, from, bytes, current, 3);
          program_.wait(me, 12);
        }
      }
    };
  }

  // Messages between any two, each rank's next receive started before the one before it ends, sends ended
  // when it comes about: requests are always under way, and nothing repeats itself.
  Statement irregular() {
    const int messages = pick(2, 40);
    const Bytes bytes = size();
    return [=, this] {
      struct Message {
        Rank from, to;
      };
      std::vector<Message> all;
      for (int i = 0; i < messages; ++i) {
        const Rank from = pick(0, program_.ranks() - 1);
        const Rank to = (from + pick(1, program_.ranks() - 1)) % program_.ranks();
        all.push_back({from, to});
      }
      std::vector<std::vector<Rank>> sources(groups_[0].size());  // by receiver, in its order
      std::vector<std::size_t> started(groups_[0].size(), 0);
      std::vector<std::size_t> ended(groups_[0].size(), 0);
      std::vector<std::vector<std::uint32_t>> sends(groups_[0].size());  // under way, by sender
      for (const Message& each : all) sources[static_cast<std::size_t>(each.to)].push_back(each.from);
      const auto start_receive = [&](Rank me) {
        const std::size_t rank = static_cast<std::size_t>(me);
        if (started[rank] == sources[rank].size()) return;
        const std::uint32_t request = 60 + static_cast<std::uint32_t>(started[rank] % 3);
        program_.irecv(me, sources[rank][started[rank]++], request, 6, work());
      };
      const auto end_send = [&](Rank me) {
        std::vector<std::uint32_t>& mine = sends[static_cast<std::size_t>(me)];
        program_.wait(me, mine.front(), true, work());
        mine.erase(mine.begin());
      };
      for (Rank me = 0; me < program_.ranks(); ++me) start_receive(me);
      std::uint32_t next = 70;
      for (const Message& each : all) {
        while (!sends[static_cast<std::size_t>(each.from)].empty() && one_in(2)) end_send(each.from);
        program_.isend(each.from, each.to, bytes, next, 6, work());
        sends[static_cast<std::size_t>(each.from)].push_back(next++);
        const std::size_t to = static_cast<std::size_t>(each.to);
        if (ended[to] == started[to] || (started[to] - ended[to] < 3 && one_in(2))) start_receive(each.to);
        program_.end_recv(each.to, each.from, bytes, 60 + static_cast<std::uint32_t>(ended[to]++ % 3), 6);
      }
      for (Rank me = 0; me < program_.ranks(); ++me) {
        while (!sends[static_cast<std::size_t>(me)].empty()) end_send(me);
      }
    };
  }

  // A sweep from the first rank to the last.
  Statement pipeline() {
    const Bytes bytes = size();
    return [=, this] {
      for (Rank me = 0; me < program_.ranks(); ++me) {
        if (me > 0) program_.recv(me, me - 1, bytes, 4, work());
        if (me + 1 < program_.ranks()) program_.send(me, me + 1, bytes, 4, work());
      }
    };
  }

  // All send to the first rank, which takes the messages in any order.
  Statement gather_from_any() {
    const Bytes bytes = size();
    return [=, this] {
      std::vector<Rank> order(groups_[0].begin() + 1, groups_[0].end());
      std::shuffle(order.begin(), order.end(), random_);
      for (Rank me = 1; me < program_.ranks(); ++me) program_.send(me, 0, bytes, 5, work());
      for (const Rank from : order) program_.recv(0, from, bytes, 5, work(), 0, kFlagWildcardSource);
      program_.all(CollectiveOp::kBarrier, 0);
    };
  }

  CollectiveOp some_op() {
    static constexpr CollectiveOp kOps[] = {CollectiveOp::kBarrier,
                                            CollectiveOp::kBcast,
                                            CollectiveOp::kReduce,
                                            CollectiveOp::kAllreduce,
                                            CollectiveOp::kGather,
                                            CollectiveOp::kScatter,
                                            CollectiveOp::kAllgather,
                                            CollectiveOp::kAlltoall,
                                            CollectiveOp::kScan,
                                            CollectiveOp::kExscan,
                                            CollectiveOp::kReduceScatterBlock};
    return kOps[static_cast<std::size_t>(pick(0, 10))];
  }

  Statement collective() {
    const std::uint32_t comm = group();
    const CollectiveOp op = some_op();
    const bool rooted = op == CollectiveOp::kBcast || op == CollectiveOp::kReduce || op == CollectiveOp::kGather ||
                        op == CollectiveOp::kScatter;
    const Rank root = rooted ? pick(0, static_cast<int>(groups_[comm].size()) - 1) : 0;
    const Bytes bytes = op == CollectiveOp::kBarrier ? 0 : size();
    return [=, this] {
      for (const Rank me : groups_[comm]) program_.collective(me, op, bytes, root, work(), comm);
    };
  }

  Statement nonblocking_collective() {
    const std::uint32_t comm = group();
    const CollectiveOp op = one_in(2) ? CollectiveOp::kAllreduce : CollectiveOp::kAlltoall;
    const Bytes bytes = size();
    const bool overlapped = groups_[comm].size() > 1 && one_in(2);
    const Statement inner = overlapped ? message() : Statement();
    return [=, this] {
      for (const Rank me : groups_[comm]) program_.icollective(me, op, bytes, 30, work(), comm);
      if (inner) inner();
      for (const Rank me : groups_[comm]) program_.wait(me, 30, true, work());
    };
  }

  // A communicator that lives for one iteration.
  Statement duplicated() {
    const Bytes bytes = size();
    return [=, this] {
      const std::uint32_t comm = next_comm_++;
      program_.all(CollectiveOp::kCommCreate, 8);
      program_.make_comm(comm, groups_[0]);
      for (const Rank me : groups_[0]) program_.collective(me, CollectiveOp::kAllreduce, bytes, 0, work(), comm);
      program_.free_comm(comm, groups_[0]);
    };
  }

  Statement vector_collective() {
    const std::size_t n = groups_[0].size();
    std::vector<std::vector<std::uint64_t>> to(n);
    for (auto& row : to) {
      for (std::size_t i = 0; i < n; ++i) row.push_back(static_cast<std::uint64_t>(pick(0, 500)));
    }
    const int kind = pick(0, 2);
    return [=, this] {
      for (std::size_t me = 0; me < n; ++me) {
        const Rank rank = static_cast<Rank>(me);
        if (kind == 0) {
          std::vector<std::uint64_t> sizes = to[me];
          for (std::size_t i = 0; i < n; ++i) sizes.push_back(to[i][me]);
          program_.collective(rank, CollectiveOp::kAlltoallv, 0, 0, work(), 0, sizes);
        } else if (kind == 1) {
          program_.collective(rank, CollectiveOp::kAllgatherv, to[0][me], 0, work(), 0, to[0]);
        } else {
          program_.collective(rank, CollectiveOp::kGatherv, to[0][me], 0, work(), 0,
                              me == 0 ? to[0] : std::vector<std::uint64_t>());
        }
      }
    };
  }

  std::mt19937_64 random_;
  RandomProgramOptions options_;
  EventProgram program_;
  std::vector<std::vector<Rank>> groups_;  // by communicator
  std::uint32_t next_comm_ = 100;
};

}  // namespace

EventProgram random_program(std::uint64_t seed, const RandomProgramOptions& options) {
  return Maker(seed, options).make();
}

}  // namespace lbf::skeleton_test
