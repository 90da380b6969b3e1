// One exchange -> one C function and its tables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "skeleton/draws.h"
#include "skeleton/signature.h"
#include "skeleton/spmd.h"

namespace lbf::skeleton {

class CExchangeWriter {
 public:
  // REQUIRES: the arguments outlive this.
  CExchangeWriter(const Signature& signature, const CommVariables& variables)
      : signature_(signature), variables_(variables) {}

  // Adds `static void exchange_N(double k)`, N being `number` + 1, which is executed as `draws` says. Errors:
  // c_program's.
  Result<void> add(std::uint32_t number, const Exchange& exchange, const Draws& draws);

  const std::string& tables() const { return tables_; }
  const std::string& functions() const { return functions_; }
  std::uint64_t statements() const { return statements_; }
  Bytes buffer_bytes() const { return buffer_bytes_; }
  // What can arrive in each slot; in those of receives any message.
  std::vector<Bytes> slot_bytes() const;

 private:
  std::string condition(const std::vector<Rank>& ranks);
  std::string expression(const Expression& expression, const std::vector<Rank>& ranks, std::uint32_t variable);
  std::string table(const std::vector<Rank>& ranks, const std::vector<std::int64_t>& values);
  std::string times(const std::vector<Rank>& ranks, const std::vector<double>& seconds);
  std::string row_of(const std::vector<Rank>& ranks);
  void timing(const SpmdOperation& operation, const std::vector<Rank>& ranks);
  void statement(const SpmdOperation& operation, const std::vector<Rank>& ranks);
  void collective(const SpmdOperation& operation, const std::vector<Rank>& ranks);
  void vector_collective(const SpmdOperation& operation, const std::vector<Rank>& ranks);
  void reserve(const SpmdOperation& operation, std::uint64_t comm_size);
  void line(const std::string& text);

  const Signature& signature_;
  const CommVariables& variables_;
  const Draws* draws_ = nullptr;  // of the exchange that is being written
  std::string tables_;
  std::string functions_;
  std::uint64_t statements_ = 0;
  std::uint32_t names_ = 0;
  Bytes buffer_bytes_ = 8;
  std::vector<Bytes> slot_bytes_;
  std::vector<std::uint32_t> receiving_slots_;
  Bytes largest_message_ = 0;
  int indent_ = 1;
};

}  // namespace lbf::skeleton
