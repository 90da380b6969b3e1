// See otf2_inbox.h.
#include "tools/import/otf2_inbox.h"

#include <algorithm>

namespace lbf::tools::otf2 {

void Inbox::send(const Message& message) {
  const auto earlier = std::find_if(ahead_.begin(), ahead_.end(),
                                    [&](const Message& receive) { return receive.is_on_channel_of(message); });
  if (earlier == ahead_.end()) {
    messages_.push_back(message);
  } else {
    ahead_.erase(earlier);
  }
}

void Inbox::receive(const Message& message) {
  const auto sent = std::find_if(messages_.begin(), messages_.end(),
                                 [&](const Message& one) { return one.is_on_channel_of(message); });
  if (sent == messages_.end()) {
    ahead_.push_back(message);
  } else {
    messages_.erase(sent);
  }
}

Result<std::vector<Message>> Inbox::take(std::size_t count, Nanoseconds until_ns) {
  const auto end = std::find_if(messages_.begin(), messages_.end(),
                                [&](const Message& message) { return message.sent_ns > until_ns; });
  const auto there = static_cast<std::size_t>(end - messages_.begin());
  const std::string receives = std::to_string(count) + (count == 1 ? " receive ends" : " receives end");
  if (there < count)
    return invalid_input(receives + " here without a record, and " + std::to_string(there) +
                         " messages are on the way");
  // On one channel messages do not overtake each other.
  const bool is_one_channel = std::all_of(
      messages_.begin(), end, [&](const Message& message) { return message.is_on_channel_of(messages_.front()); });
  if (there > count && !is_one_channel) {
    return invalid_input(receives + " here without a record, and may have taken " + std::to_string(there) +
                         " messages: the archive does not say which");
  }
  const auto last = messages_.begin() + static_cast<std::ptrdiff_t>(count);
  std::vector<Message> taken(messages_.begin(), last);
  messages_.erase(messages_.begin(), last);
  return taken;
}

}  // namespace lbf::tools::otf2
