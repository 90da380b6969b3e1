// What the parameters of one action of a TI trace say (docs/man/lbf-trace.1, "ti"). No file but the import needs it.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/number.h"
#include "base/result.h"
#include "base/units.h"
#include "event/event.h"
#include "tools/trace/ti_lines.h"

namespace lbf::tools::ti {

inline constexpr Bytes kMaxBytes = Bytes{1} << 50;

// Bytes of SimGrid's datatypes by their numbers in a trace; 0: has no size.
inline constexpr std::array<std::uint8_t, 60> kDatatypeBytes{
    8,  4,  1,  2,  8,
    4,  1,  8,  1,  1,  // double int char short long float byte llong schar uchar
    2,  4,  8,  8,  16,
    4,  1,  1,  2,  4,  // ushort uint ulong ullong ldouble wchar bool i8 i16 i32
    8,  1,  2,  4,  8,
    8,  16, 32, 8,  8,  // i64 u8 u16 u32 u64 cfloat cdouble cldouble aint offset
    8,  16, 16, 8,  8,
    8,  16, 16, 4,  4,  // float_int long_int double_int short_int 2int 2float 2double 2long real real4
    8,  16, 8,  16, 16,
    4,  2,  4,  8,  16,  // real8 real16 complex8 16 32, integer1 2 4 8 16
    32, 1,  8,  16, 32,
    0,  0,  1,  8,  8};  // ldouble_int cxxbool cxx complexes ub lb packed ptr count
inline constexpr int kDouble = 0;
inline constexpr int kByte = 6;

template <typename Number>
bool parse(std::string_view text, Number& value) {
  const auto number = parse_number<Number>(text);
  value = number.value_or(value);
  return number.has_value();
}

inline Result<void> check(const TiWords& words, std::size_t required, const char* form) {
  if (words.size() >= required + 2) return {};
  return invalid_input(std::string(words[1]) + " needs at least " + std::to_string(required) + " parameters: RANK " +
                       form);
}

// What the parameters of one action say; the first one that cannot be is kept.
class TiParameters {
 public:
  TiParameters(const TiWords& words, Rank ranks, int default_datatype)
      : words_(words), ranks_(ranks), default_datatype_(default_datatype) {}

  bool has(std::size_t i) const { return i < words_.size(); }
  // A rank of the world.
  Rank rank(std::size_t i, const char* what) {
    std::int64_t value = 0;
    if (!parse(words_[i], value) || value < 0) return fail(i, what);
    if (value >= ranks_) {
      fail_with(std::string(what) + " " + std::string(words_[i]) + ": there are " + std::to_string(ranks_) + " ranks");
      return 0;
    }
    return static_cast<Rank>(value);
  }
  std::int32_t tag(std::size_t i) {
    std::int64_t value = 0;
    if (!parse(words_[i], value) || value < 0 || value > std::numeric_limits<std::int32_t>::max())
      return fail(i, "tag");
    return static_cast<std::int32_t>(value);
  }
  // Below 0 are wildcards: SimGrid's own are -555 and -444.
  Rank source(std::size_t i) { return is_below_0(i) ? kAnyRank : rank(i, "source"); }
  std::int32_t tag_or_any(std::size_t i) { return is_below_0(i) ? kAnyTag : tag(i); }
  Rank root(std::size_t i) { return has(i) ? rank(i, "root") : 0; }
  // A count as SimGrid reads it (1e6 is one), not negative.
  double count(std::size_t i) {
    const double value = count_or_unknown(i);
    return value < 0 ? fail(i, "count") : value;
  }
  // A receive may not know how much comes: below 0 is 0.
  double count_of_receive(std::size_t i) { return std::max(count_or_unknown(i), 0.0); }
  double flops(std::size_t i) {
    double value = 0;
    if (!parse(words_[i], value) || value < 0) return fail(i, "amount");
    return value;
  }
  double datatype(std::size_t i) {
    int id = default_datatype_;
    if (has(i) && (!parse(words_[i], id) || id < 0 || id >= static_cast<int>(kDatatypeBytes.size()))) {
      return fail(i, "datatype");
    }
    return kDatatypeBytes[static_cast<std::size_t>(id)];
  }
  Bytes bytes(double count, double size) {
    const double all = count * size;
    if (all > static_cast<double>(kMaxBytes)) {
      fail_with("a message of more than 2^50 bytes");
      return 0;
    }
    return static_cast<Bytes>(all);
  }
  Result<void> result() const { return failed_ ? Result<void>(invalid_input(why_)) : Result<void>(); }

 private:
  bool is_below_0(std::size_t i) const {
    std::int64_t value = 0;
    return parse(words_[i], value) && value < 0;
  }
  double count_or_unknown(std::size_t i) {
    double value = 0;
    if (!parse(words_[i], value)) return fail(i, "count");
    value = std::trunc(value);
    return value > static_cast<double>(kMaxBytes) ? fail(i, "count") : value;
  }
  int fail(std::size_t i, const char* what) {
    fail_with(std::string(words_[1]) + ": '" + std::string(words_[i]) + "' is no " + what);
    return 0;
  }
  void fail_with(std::string why) {
    if (!failed_) why_ = std::move(why);
    failed_ = true;
  }
  const TiWords& words_;
  Rank ranks_;
  int default_datatype_;
  bool failed_ = false;
  std::string why_;
};

}  // namespace lbf::tools::ti
