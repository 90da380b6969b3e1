// ShareCount: how many of something (connections, requests, answers) each peer or user has at the moment.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>

namespace lbf::daemon {

// REQUIRES: used by one thread; outlives its parts.
class ShareCount {
 public:
  // One of them. Gives itself back at its end.
  class Part {
   public:
    Part() = default;
    Part(ShareCount& count, std::string owner) : count_(&count), owner_(std::move(owner)) { ++count.of_[owner_]; }
    Part(Part&& other) noexcept : count_(std::exchange(other.count_, nullptr)), owner_(std::move(other.owner_)) {}
    Part& operator=(Part&& other) noexcept {
      give_back();
      count_ = std::exchange(other.count_, nullptr);
      owner_ = std::move(other.owner_);
      return *this;
    }
    ~Part() { give_back(); }

    void give_back() {
      ShareCount* const count = std::exchange(count_, nullptr);
      if (count == nullptr) return;
      const auto found = count->of_.find(owner_);
      if (--found->second == 0) count->of_.erase(found);
    }

   private:
    ShareCount* count_ = nullptr;
    std::string owner_;
  };

  std::size_t of(const std::string& owner) const {
    const auto found = of_.find(owner);
    return found == of_.end() ? 0 : found->second;
  }

 private:
  std::map<std::string, std::size_t> of_;
};

}  // namespace lbf::daemon
