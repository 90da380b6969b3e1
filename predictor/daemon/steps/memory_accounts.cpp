// MemoryAccounts, see memory_accounts.h.
#include "predictor/daemon/steps/memory_accounts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lbf::daemon {
namespace {

std::string mebibytes(Bytes bytes) {
  return fmt::format("{} MiB", bytes >> 20);
}

}  // namespace

MemoryAccounts::Account::Account(std::shared_ptr<MemoryAccounts> accounts, uid_t user)
    : accounts_(std::move(accounts)), user_(user) {}

MemoryAccounts::Account::~Account() {
  set(0);
}

void MemoryAccounts::Account::set(Bytes bytes) {
  const MutexLock lock(accounts_->mutex_);
  Bytes& of_user = accounts_->of_user_[user_];
  of_user += bytes - bytes_;  // wraps where it shrinks
  accounts_->all_ += bytes - bytes_;
  bytes_ = bytes;
  if (of_user == 0) accounts_->of_user_.erase(user_);
}

std::string MemoryAccounts::Account::why_not(Bytes bytes) const {
  const Bounds& bounds = accounts_->bounds_;
  if (bounds.step_memory_bytes > 0 && bytes > bounds.step_memory_bytes)
    return fmt::format("the step needs more than {} of lbfd's memory (step_memory_mb)",
                       mebibytes(bounds.step_memory_bytes));
  const MutexLock lock(accounts_->mutex_);
  const auto found = accounts_->of_user_.find(user_);
  const Bytes of_user = (found == accounts_->of_user_.end() ? 0 : found->second) - bytes_ + bytes;
  if (bounds.user_memory_bytes > 0 && of_user > bounds.user_memory_bytes)
    return fmt::format("the user's steps need more than {} of lbfd's memory (user_memory_mb)",
                       mebibytes(bounds.user_memory_bytes));
  if (bounds.all_memory_bytes == 0 || accounts_->all_ - bytes_ + bytes <= bounds.all_memory_bytes) return {};
  const bool holds_most = std::ranges::none_of(
      accounts_->of_user_, [&](const auto& other) { return other.first != user_ && other.second > of_user; });
  if (!holds_most) return {};
  return fmt::format("all steps need more than {} of lbfd's memory (memory_mb), this user's steps most of it",
                     mebibytes(bounds.all_memory_bytes));
}

Bytes MemoryAccounts::of_user(uid_t user) const {
  const MutexLock lock(mutex_);
  const auto found = of_user_.find(user);
  return found == of_user_.end() ? 0 : found->second;
}

Bytes MemoryAccounts::of_all() const {
  const MutexLock lock(mutex_);
  return all_;
}

}  // namespace lbf::daemon
