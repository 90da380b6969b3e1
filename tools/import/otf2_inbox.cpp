// See otf2_inbox.h.
#include "tools/import/otf2_inbox.h"

#include <algorithm>
#include <utility>

namespace lbf::tools::otf2 {

// A receive without a record may have taken the first message of a channel: what a record names is told by its length.
void Inbox::settle(Nanoseconds until_ns) {
  std::deque<Message> open;
  for (const Message& received : received_) {
    auto found = on_the_way_.end();
    for (auto at = on_the_way_.begin(); at != on_the_way_.end() && received.sent_ns <= until_ns; ++at) {
      if (!at->is_on_channel_of(received)) continue;
      if (found == on_the_way_.end()) found = at;
      if (at->bytes != received.bytes) continue;
      found = at;
      break;
    }
    if (found == on_the_way_.end()) {
      open.push_back(received);
    } else {
      on_the_way_.erase(found);
    }
  }
  received_ = std::move(open);
}

std::size_t Inbox::sent_until(Nanoseconds ns) const {
  const auto end = std::find_if(on_the_way_.begin(), on_the_way_.end(),
                                [&](const Message& message) { return message.sent_ns > ns; });
  return static_cast<std::size_t>(end - on_the_way_.begin());
}

Result<std::vector<Message>> Inbox::take(std::size_t count, Nanoseconds until_ns, Nanoseconds now_ns) {
  settle(until_ns);
  Nanoseconds last_ns = until_ns;
  if (sent_until(until_ns + kClockError) < count) {
    settle(now_ns);
    const bool are_there = on_the_way_.size() >= count;
    const Nanoseconds latest_ns = until_ns + kMostClockError;
    if (are_there) last_ns = on_the_way_[count - 1].sent_ns;
    if (now_ns < (are_there ? std::min(last_ns + kClockError, latest_ns) : latest_ns)) return std::vector<Message>();
    if (last_ns > latest_ns) last_ns = until_ns;
  }
  const std::size_t there = sent_until(last_ns + kClockError);
  const std::string receives = std::to_string(count) + (count == 1 ? " receive ends" : " receives end");
  if (there < count) {
    return invalid_input(receives + " here without a record, and " + std::to_string(there) +
                         " messages are on the way");
  }
  // On one channel messages do not overtake each other.
  const auto end = on_the_way_.begin() + static_cast<std::ptrdiff_t>(there);
  const bool is_one_channel = std::all_of(
      on_the_way_.begin(), end, [&](const Message& message) { return message.is_on_channel_of(on_the_way_.front()); });
  if (there > count && !is_one_channel) {
    return invalid_input(receives + " here without a record, and may have taken " + std::to_string(there) +
                         " messages: the archive does not say which");
  }
  const auto last = on_the_way_.begin() + static_cast<std::ptrdiff_t>(count);
  std::vector<Message> taken(on_the_way_.begin(), last);
  on_the_way_.erase(on_the_way_.begin(), last);
  return taken;
}

}  // namespace lbf::tools::otf2
