// Times as sacct reads and writes them, finer where a run is short.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"

namespace lbf {

struct PointInTime {
  std::time_t at_s = 0;     // since the epoch
  bool is_skipped = false;  // no local clock shows it: `at_s` is the change of the clocks that leaves it out
};

// Which one of the two instants is meant where a change of the clocks repeats an hour.
enum class Repeated : std::uint8_t { kEarlier, kLater };

// A point in time in one of sacct's formats, in the local time zone:
//   HH:MM[:SS][AM|PM]                      today
//   MMDD[YY][-HH:MM[:SS]]  MM.DD[.YY][-HH:MM[:SS]]  MM/DD[/YY][-HH:MM[:SS]]   this year without YY
//   YYYY-MM-DD[THH:MM[:SS][Z|{+|-}HH[[:]MM]]]
//   midnight noon fika teatime             of today: 0:00, 12:00, 15:00, 16:00
//   {yesterday|today|tomorrow}[-HH:MM[:SS]]
//   now[{+|-}COUNT[seconds|minutes|hours|days|weeks]]
// `now` is the present moment. Errors: kInvalidInput, with the formats.
Result<PointInTime> parse_time(std::string_view text, std::time_t now, Repeated repeated);

// 0:00 of the local day that `now` is in.
std::time_t start_of_day(std::time_t now);

// "2026-11-21T12:00:00", local time; "Unknown" (sacct's word) for a time that is not known (below or equal
// 0).
std::string format_timestamp(double since_epoch_s);
// "2026-11-21T12:00:00Z".
std::string utc_timestamp(std::time_t since_epoch_s);
// How format_timestamp writes from here on: SLURM_TIME_FORMAT's "standard" (as above), "relative" ("12:00:00" today,
// "Ystday 12:00", "Sat 12:00", "21 Nov 12:00", "21 Nov 2024") or what strftime takes. Not thread-safe.
void set_timestamp_format(std::string format);

// "0 s", "12.3 us", "1.23 ms", "12.34 s", "123.4 s", from ten minutes on sacct's [D-]HH:MM:SS. `digits`:
// significant ones below ten minutes.
std::string format_duration(Seconds seconds, int digits = 4);

}  // namespace lbf
