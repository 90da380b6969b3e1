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
  return invalid_input(
      fmt::format("'{}' is no time; write HH:MM[:SS][AM|PM], MMDD[YY], MM/DD[/YY], MM.DD[.YY], "
                  "YYYY-MM-DD[THH:MM[:SS]], today, midnight, noon, fika, teatime or "
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

std::optional<std::time_t> to_time(const Date& date, const Clock& clock) {
  std::tm broken{};
  broken.tm_year = date.year - 1900;
  broken.tm_mon = date.month - 1;
  broken.tm_mday = date.day;
  broken.tm_hour = clock.hour;
  broken.tm_min = clock.minute;
  broken.tm_sec = clock.second;
  broken.tm_isdst = -1;
  const std::time_t seconds = std::mktime(&broken);
  if (seconds == std::time_t{-1}) return std::nullopt;
  return seconds;
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

std::tm local(std::time_t time) {
  std::tm broken{};
  localtime_r(&time, &broken);
  return broken;
}

}  // namespace

Result<std::time_t> parse_time(std::string_view text, std::time_t now) {
  const std::string lowered = lower(text);
  const std::tm today_tm = local(now);
  const Date today{today_tm.tm_year + 1900, today_tm.tm_mon + 1, today_tm.tm_mday};

  struct Word {
    std::string_view name;
    int hour;
  };
  constexpr std::array<Word, 5> kWords{{{"today", 0}, {"midnight", 0}, {"noon", 12}, {"fika", 15}, {"teatime", 16}}};
  for (const Word& word : kWords) {
    if (lowered == word.name) {
      if (const auto time = to_time(today, Clock{word.hour, 0, 0})) return *time;
      return time_error(text);
    }
  }

  Cursor in(lowered);
  if (in.take_word("now")) {
    const auto time = take_offset(in, now);
    return time ? Result<std::time_t>(*time) : Result<std::time_t>(time_error(text));
  }

  Date date = today;
  Clock clock;
  const std::size_t digits = in.digits();
  const bool clock_only = lowered.size() > digits && lowered[digits] == ':';
  if (clock_only) {
    const auto taken = take_clock(in);
    if (!taken) return time_error(text);
    clock = *taken;
  } else {
    const auto taken = take_date(in, today.year);
    if (!taken) return time_error(text);
    date = *taken;
    if (in.take('t') || in.take('-') || in.take(' ')) {
      const auto of_day = take_clock(in);
      if (!of_day) return time_error(text);
      clock = *of_day;
    }
  }
  if (!in.done()) return time_error(text);
  const auto time = to_time(date, clock);
  return time ? Result<std::time_t>(*time) : Result<std::time_t>(time_error(text));
}

std::time_t start_of_day(std::time_t now) {
  std::tm broken = local(now);
  broken.tm_hour = 0;
  broken.tm_min = 0;
  broken.tm_sec = 0;
  broken.tm_isdst = -1;
  return std::mktime(&broken);
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
