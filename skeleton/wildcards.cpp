#include "skeleton/wildcards.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace lbf::skeleton {
namespace {

bool any_source(const Operation& operation) {
  return is_receive(operation.kind) && (operation.flags & kFlagWildcardSource) != 0;
}

// What a receive was posted for; none: a wildcard.
struct Posted {
  std::optional<Rank> source;
  std::optional<std::int32_t> tag;
  auto operator<=>(const Posted&) const = default;
};

Posted posted(const Operation& operation) {
  Posted result;
  if ((operation.flags & kFlagWildcardSource) == 0) result.source = operation.peer;
  if ((operation.flags & kFlagWildcardTag) == 0) result.tag = operation.tag;
  return result;
}

// A receive from any source could take the messages of every other one with its tag, or with any.
bool can_keep(const std::set<Posted>& all) {
  std::map<std::int32_t, std::size_t> with_tag;
  std::size_t with_any_tag = 0;
  for (const Posted& one : all) {
    if (one.tag) {
      ++with_tag[*one.tag];
    } else {
      ++with_any_tag;
    }
  }
  return std::none_of(all.begin(), all.end(), [&](const Posted& one) {
    if (one.source) return false;
    return one.tag ? with_any_tag > 0 || with_tag[*one.tag] > 1 : all.size() > 1;
  });
}

}  // namespace

WildcardCount fix_wildcards(ProgramTrace& trace) {
  WildcardCount count;
  for (std::vector<Operation>& operations : trace.ranks) {
    const auto wild = [](const Operation& o) {
      return is_receive(o.kind) && (o.flags & (kFlagWildcardSource | kFlagWildcardTag)) != 0;
    };
    const std::uint64_t here = static_cast<std::uint64_t>(std::count_if(operations.begin(), operations.end(), wild));
    if (here == 0) continue;
    count.all += here;
    std::map<std::uint32_t, std::set<Posted>> posted_on;  // by communicator
    std::map<std::uint32_t, std::set<Rank>> sources;      // of wildcards
    std::set<Rank> sent_to;
    for (const Operation& operation : operations) {
      if (is_receive(operation.kind)) posted_on[operation.comm].insert(posted(operation));
      if (any_source(operation)) sources[operation.comm].insert(operation.peer);
      if (operation.kind == OperationKind::kSend || operation.kind == OperationKind::kIsend)
        sent_to.insert(operation.peer);
    }
    for (auto& [comm, from] : sources) {
      const bool answers = std::any_of(from.begin(), from.end(), [&](Rank r) { return sent_to.contains(r); });
      if (!answers && can_keep(posted_on[comm])) continue;
      for (Operation& operation : operations) {
        if (operation.comm != comm || !any_source(operation)) continue;
        operation.flags &= static_cast<std::uint8_t>(~(kFlagWildcardSource | kFlagWildcardTag));
        ++count.fixed;
      }
    }
  }
  return count;
}

}  // namespace lbf::skeleton
