#include "base/times.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <ctime>
#include <limits>
#include <optional>
#include <utility>

namespace lbf {
namespace {

constexpr Seconds kClockFormatFromS = 600;  // from here on a second more or less is below 0.2 %

Error time_error(std::string_view text) {
  return invalid_input(fmt::format(
      "'{}' is no time; write HH:MM[:SS][AM|PM], MMDD[YY], MM/DD[/YY], MM.DD[.YY], "
      "YYYY-MM-DD[THH:MM[:SS][Z|{{+|-}}HH:MM]], today, yesterday, tomorrow, midnight, noon, fika, teatime or "
      "now[{{+|-}}COUNT[seconds|minutes|hours|days|weeks]]",
      text));
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Reads the text from left to right; every take_* leaves the position alone where it does not match.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : rest_(text) {}

  bool done() const { return rest_.empty(); }
  bool take(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool take_word(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  void skip_blanks() {
    while (take(' ')) {
    }
  }
  std::size_t digits() const { return std::min(rest_.find_first_not_of("0123456789"), rest_.size()); }
  // Exactly `count` digits (the next character may be a digit, too).
  std::optional<int> take_digits(std::size_t count) {
    if (digits() < count || count == 0 || count > 9) return std::nullopt;
    int value = 0;
    for (const char c : rest_.substr(0, count)) value = 10 * value + (c - '0');
    rest_.remove_prefix(count);
    return value;
  }
  // A number of 1 to `most` digits that no further digit follows.
  std::optional<int> take_number(std::size_t most) {
    const std::size_t count = digits();
    if (count == 0 || count > most) return std::nullopt;
    return take_digits(count);
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

struct Clock {
  int hour = 0;
  int minute = 0;
  int second = 0;
};

// HH:MM[:SS][ ][AM|PM]
std::optional<Clock> take_clock(Cursor& in) {
  Clock clock;
  const auto hour = in.take_number(2);
  if (!hour || !in.take(':')) return std::nullopt;
  const auto minute = in.take_digits(2);
  if (!minute) return std::nullopt;
  clock.hour = *hour;
  clock.minute = *minute;
  if (in.take(':')) {
    const auto second = in.take_digits(2);
    if (!second) return std::nullopt;
    clock.second = *second;
  }
  in.skip_blanks();
  const bool am = in.take_word("am");
  const bool pm = !am && in.take_word("pm");
  if (am || pm) {
    if (clock.hour < 1 || clock.hour > 12) return std::nullopt;
    clock.hour = clock.hour % 12 + (pm ? 12 : 0);
  }
  if (clock.hour > 23 || clock.minute > 59 || clock.second > 59) return std::nullopt;
  return clock;
}

struct Date {
  int year = 0;
  int month = 0;  // 1 .. 12
  int day = 0;
};

bool exists(const Date& date) {
  constexpr std::array<int, 12> kDays{31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (date.month < 1 || date.month > 12 || date.day < 1) return false;
  const bool leap = (date.year % 4 == 0 && date.year % 100 != 0) || date.year % 400 == 0;
  if (date.month == 2 && !leap) return date.day <= 28;
  return date.day <= kDays[static_cast<std::size_t>(date.month - 1)];
}

int full_year(int two_digits) {
  return 2000 + two_digits;
}

// YYYY-MM-DD, MM/DD[/YY], MM.DD[.YY], MMDD[YY]
std::optional<Date> take_date(Cursor& in, int this_year) {
  Date date;
  const std::size_t digits = in.digits();
  if (digits == 4 && in.rest().size() > 4 && in.rest()[4] == '-' && in.rest().size() >= 8 && is_digit(in.rest()[5]) &&
      in.rest().find('-', 5) != std::string_view::npos) {
    date.year = in.take_digits(4).value_or(0);
    in.take('-');
    date.month = in.take_number(2).value_or(0);
    if (!in.take('-')) return std::nullopt;
    date.day = in.take_number(2).value_or(0);
  } else if (digits == 4 || digits == 6) {
    date.month = in.take_digits(2).value_or(0);
    date.day = in.take_digits(2).value_or(0);
    date.year = digits == 6 ? full_year(in.take_digits(2).value_or(0)) : this_year;
  } else if (digits == 1 || digits == 2) {
    date.month = in.take_number(2).value_or(0);
    const char separator = in.rest().empty() ? '\0' : in.rest().front();
    if (separator != '/' && separator != '.') return std::nullopt;
    in.take(separator);
    date.day = in.take_number(2).value_or(0);
    date.year = this_year;
    if (in.take(separator)) {
      const std::size_t year_digits = in.digits();
      const auto year = in.take_digits(year_digits);
      if (!year || (year_digits != 2 && year_digits != 4)) return std::nullopt;
      date.year = year_digits == 2 ? full_year(*year) : *year;
    }
  } else {
    return std::nullopt;
  }
  if (date.year < 1970 || date.year > 9999 || !exists(date)) return std::nullopt;
  return date;
}

std::tm local(std::time_t time) {
  std::tm broken{};
  localtime_r(&time, &broken);
  return broken;
}

std::time_t as_if_utc(const Date& date, const Clock& clock) {
  std::tm broken{};
  broken.tm_year = date.year - 1900;
  broken.tm_mon = date.month - 1;
  broken.tm_mday = date.day;
  broken.tm_hour = clock.hour;
  broken.tm_min = clock.minute;
  broken.tm_sec = clock.second;
  return ::timegm(&broken);
}

// By the offsets of the days before and after: mktime picks one of two instants as its C library likes.
PointInTime to_time(const Date& date, const Clock& clock, Repeated repeated) {
  constexpr std::time_t kDay = 86400;
  const std::time_t utc = as_if_utc(date, clock);
  const auto offset_at = [](std::time_t time) { return local(time).tm_gmtoff; };
  const auto [least, most] = std::minmax({offset_at(utc - kDay), offset_at(utc + kDay)});
  std::time_t earlier = utc - most;
  std::time_t later = utc - least;
  const bool earlier_exists = offset_at(earlier) == most;
  const bool later_exists = offset_at(later) == least;
  if (earlier_exists && (!later_exists || repeated == Repeated::kEarlier)) return {earlier};
  if (later_exists) return {later};
  const long offset_before = offset_at(earlier);
  while (later - earlier > 1) {
    const std::time_t middle = earlier + (later - earlier) / 2;
    (offset_at(middle) == offset_before ? earlier : later) = middle;
  }
  return {later, true};
}

// Z, +HH, +HHMM, +HH:MM: seconds east of Greenwich.
std::optional<int> take_zone(Cursor& in) {
  if (in.take('z')) return 0;
  const bool west = in.take('-');
  if (!west && !in.take('+')) return std::nullopt;
  const auto hours = in.take_digits(2);
  if (!hours || *hours > 23) return std::nullopt;
  int minutes = 0;
  if (in.take(':') || in.digits() > 0) {
    const auto taken = in.take_digits(2);
    if (!taken || *taken > 59) return std::nullopt;
    minutes = *taken;
  }
  const int seconds = 3600 * *hours + 60 * minutes;
  return west ? -seconds : seconds;
}

struct Word {
  std::string_view name;
  int value;
};
constexpr std::array<Word, 3> kDays{{{"yesterday", -1}, {"today", 0}, {"tomorrow", 1}}};
constexpr std::array<Word, 4> kHours{{{"midnight", 0}, {"noon", 12}, {"fika", 15}, {"teatime", 16}}};

template <std::size_t N>
std::optional<int> take_one_of(Cursor& in, const std::array<Word, N>& words) {
  for (const Word& word : words) {
    if (in.take_word(word.name)) return word.value;
  }
  return std::nullopt;
}

std::optional<Clock> take_time_of_day(Cursor& in) {
  if (const auto hour = take_one_of(in, kHours)) return Clock{*hour, 0, 0};
  return take_clock(in);
}

Date date_of(std::time_t time) {
  const std::tm broken = local(time);
  return {broken.tm_year + 1900, broken.tm_mon + 1, broken.tm_mday};
}

// `days` after the local day of `now`.
Date day_from(std::time_t now, int days) {
  const std::time_t noon = as_if_utc(date_of(now), Clock{12, 0, 0}) + std::time_t{86400} * days;
  std::tm broken{};
  ::gmtime_r(&noon, &broken);
  return {broken.tm_year + 1900, broken.tm_mon + 1, broken.tm_mday};
}

// What follows "now".
std::optional<std::time_t> take_offset(Cursor& in, std::time_t now) {
  in.skip_blanks();
  if (in.done()) return now;
  const bool minus = in.take('-');
  if (!minus && !in.take('+')) return std::nullopt;
  in.skip_blanks();
  const auto count = in.take_number(9);
  if (!count) return std::nullopt;
  in.skip_blanks();
  std::int64_t unit_s = 1;
  const std::string unit(in.rest());
  if (!unit.empty()) {
    // Slurm takes any beginning of a unit's name ("min", "h"), so do we.
    struct Unit {
      std::string_view name;
      std::int64_t seconds;
    };
    constexpr std::array<Unit, 5> kUnits{
        {{"seconds", 1}, {"minutes", 60}, {"hours", 3600}, {"days", 86400}, {"weeks", 604800}}};
    const auto* const found =
        std::find_if(kUnits.begin(), kUnits.end(), [&](const Unit& u) { return u.name.starts_with(unit); });
    if (found == kUnits.end()) return std::nullopt;
    unit_s = found->seconds;
  }
  const std::int64_t offset_s = unit_s * *count;
  return now + static_cast<std::time_t>(minus ? -offset_s : offset_s);
}

// A date or a day's name, with a time of day behind it or not; or a time of today.
std::optional<PointInTime> take_point(Cursor& in, std::time_t now, Repeated repeated) {
  const Date today = date_of(now);
  if (const auto clock = take_one_of(in, kHours)) return to_time(today, Clock{*clock, 0, 0}, repeated);
  const std::size_t digits = in.digits();
  if (digits > 0 && in.rest().size() > digits && in.rest()[digits] == ':') {
    const auto clock = take_clock(in);
    return clock ? std::optional(to_time(today, *clock, repeated)) : std::nullopt;
  }
  const auto days = take_one_of(in, kDays);
  const std::optional<Date> date = days ? day_from(now, *days) : take_date(in, today.year);
  if (!date) return std::nullopt;
  if (!in.take('t') && !in.take('-') && !in.take(' ')) return to_time(*date, Clock(), repeated);
  const auto clock = take_time_of_day(in);
  if (!clock) return std::nullopt;
  if (in.done()) return to_time(*date, *clock, repeated);
  const auto east_s = take_zone(in);
  return east_s ? std::optional(PointInTime{as_if_utc(*date, *clock) - *east_s}) : std::nullopt;
}

}  // namespace

Result<PointInTime> parse_time(std::string_view text, std::time_t now, Repeated repeated) {
  const std::string lowered = lower(text);
  Cursor in(lowered);
  if (in.take_word("now")) {
    const auto time = take_offset(in, now);
    return time ? Result<PointInTime>(PointInTime{*time}) : Result<PointInTime>(time_error(text));
  }
  const auto time = take_point(in, now, repeated);
  return time && in.done() ? Result<PointInTime>(*time) : Result<PointInTime>(time_error(text));
}

std::time_t start_of_day(std::time_t now) {
  return to_time(date_of(now), Clock(), Repeated::kEarlier).at_s;
}

namespace {

std::string timestamp_format = "standard";  // NOLINT: set once, by main

// Days from the day of `now` to that of `then`, by the local calendar.
int days_between(const std::tm& now, const std::tm& then) {
  const auto noon = [](std::tm day) {
    day.tm_hour = 12;
    day.tm_min = day.tm_sec = 0;
    day.tm_isdst = -1;
    return std::mktime(&day);
  };
  return static_cast<int>(std::lround(std::difftime(noon(then), noon(now)) / 86400));
}

// As Slurm's commands do.
const char* relative_format(const std::tm& now, const std::tm& then) {
  const int days = days_between(now, then);
  if (days == 0) return "%H:%M:%S";
  if (days == -1) return "Ystday %H:%M";
  if (days == 1) return "Tomorr %H:%M";
  if (days < -365 || days > 365) return "%-d %b %Y";
  if (days < -1 || days > 6) return "%-d %b %H:%M";
  return "%a %H:%M";
}

}  // namespace

std::string utc_timestamp(std::time_t since_epoch_s) {
  std::tm parts{};
  ::gmtime_r(&since_epoch_s, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

void set_timestamp_format(std::string format) {
  timestamp_format = format.empty() ? "standard" : std::move(format);
}

std::string format_timestamp(double since_epoch_s) {
  constexpr double kLast = 253402300799.0;  // the end of the year 9999
  if (!(since_epoch_s > 0) || since_epoch_s > kLast) return "Unknown";
  const std::tm broken = local(static_cast<std::time_t>(since_epoch_s));
  if (timestamp_format != "standard") {
    const std::string format =
        timestamp_format == "relative" ? relative_format(local(std::time(nullptr)), broken) : timestamp_format;
    std::array<char, 256> text{};  // Slurm's own limit
    if (std::strftime(text.data(), text.size(), format.c_str(), &broken) > 0) return text.data();
  }
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", broken.tm_year + 1900, broken.tm_mon + 1, broken.tm_mday,
                     broken.tm_hour, broken.tm_min, broken.tm_sec);
}

std::string format_duration(Seconds seconds, int digits) {
  if (!std::isfinite(seconds)) return "Unknown";
  if (seconds == 0) return "0 s";
  const std::string sign = seconds < 0 ? "-" : "";
  const double magnitude = std::fabs(seconds);
  if (magnitude >= kClockFormatFromS) {
    const double rounded = std::floor(magnitude + 0.5);
    if (rounded > static_cast<double>(std::numeric_limits<std::int64_t>::max() / 2)) return "Unknown";
    const auto whole = static_cast<std::int64_t>(rounded);
    const std::int64_t days = whole / 86400;
    const std::string clock = fmt::format("{:02}:{:02}:{:02}", whole % 86400 / 3600, whole % 3600 / 60, whole % 60);
    return days > 0 ? fmt::format("{}{}-{}", sign, days, clock) : sign + clock;
  }
  double scaled = magnitude;
  const char* unit = "s";
  if (magnitude < 1e-3) {
    scaled = magnitude * 1e6, unit = "us";
  } else if (magnitude < 0.1) {
    scaled = magnitude * 1e3, unit = "ms";
  }
  const int whole_digits = scaled < 1 ? 1 : static_cast<int>(std::floor(std::log10(scaled))) + 1;
  return fmt::format("{}{:.{}f} {}", sign, scaled, std::max(0, digits - whole_digits), unit);
}

}  // namespace lbf
