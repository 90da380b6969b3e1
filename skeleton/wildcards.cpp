#include "skeleton/wildcards.h"

#include <algorithm>
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

bool overlap(const Posted& a, const Posted& b) {
  return (!a.source || !b.source || *a.source == *b.source) && (!a.tag || !b.tag || *a.tag == *b.tag);
}

bool can_keep(const std::set<Posted>& all) {
  for (const Posted& a : all) {
    if (a.source) continue;
    const auto other = [&](const Posted& b) { return a != b && overlap(a, b); };
    if (std::any_of(all.begin(), all.end(), other)) return false;
  }
  return true;
}

}  // namespace

WildcardCount fix_wildcards(ProgramTrace& trace) {
  WildcardCount count;
  for (std::vector<Operation>& operations : trace.ranks) {
    const auto wild = [](const Operation& o) {
      return is_receive(o.kind) && (o.flags & (kFlagWildcardSource | kFlagWildcardTag)) != 0;
    };
    const std::uint64_t here =
        static_cast<std::uint64_t>(std::count_if(operations.begin(), operations.end(), wild));
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
