// What documents and lists share when they write the fields of a record (protocol/field.h) as JSON.
#pragma once

#include <functional>
#include <optional>
#include <type_traits>

#include "db/records.h"
#include "predictor/daemon/steps/step_run.h"

namespace lbf::daemon {

constexpr unsigned form_of(StepDetail detail) {
  switch (detail) {
    case StepDetail::kBrief:
      return protocol::In::kBrief;
    case StepDetail::kSummary:
      return protocol::In::kSummary;
    case StepDetail::kList:
      return protocol::In::kList;
    case StepDetail::kFull:
      return protocol::In::kFull;
  }
  return protocol::In::kFull;
}

// Calls use(value). A program that would wait for ever has no run time: nobody shall take the time until then for one.
// The same of one that was not replayed to its end for want of room, and of one of which too little was seen.
template <typename Field, typename Record, typename Use>
void use_value(const Field& field, const Record& record, const Use& use) {
  const auto& value = std::invoke(field.member, record);
  if constexpr (requires {
                  record.is_known();
                  std::optional<double>(value);
                }) {
    const bool is_null = (field.when == protocol::When::kKnown && !record.is_known()) ||
                         (field.when == protocol::When::kSeen && record.seen_too_little());
    if (is_null) return use(std::optional<double>());
  }
  use(value);
}

// Whether a document of this form has the field.
template <typename Field, typename Record>
bool is_written(const Field& field, const Record& record, unsigned form) {
  if (!field.is_in(form)) return false;
  if constexpr (requires { record.why_deferred; }) {
    if (field.when == protocol::When::kDeferred) return !record.why_deferred.empty();
  }
  if (field.when != protocol::When::kSet) return true;
  const auto& value = std::invoke(field.member, record);
  if constexpr (std::is_same_v<decltype(value), const bool&>) return value;
  if constexpr (std::is_same_v<decltype(value), const std::uint64_t&>) return value != 0;
  if constexpr (std::is_same_v<decltype(value), const protocol::Topology&>) return !value.file.empty();
  return true;
}

}  // namespace lbf::daemon
