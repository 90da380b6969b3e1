// TimeDistribution: how long one computation of the signature took, over all its repetitions. The paper keeps
// the average and names the distribution as the better way (Sec. 5.3, end).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace lbf::skeleton {

class TimeDistribution {
 public:
  // REQUIRES: seconds >= 0.
  void add(float seconds) {
    ++count_;
    if (!(seconds > 0)) return;
    sum_s_ += seconds;
    const std::uint32_t bin = std::bit_cast<std::uint32_t>(seconds) >> kBinShift;
    auto at = std::find_if(bins_.begin(), bins_.end(), [&](const Bin& b) { return b.bin == bin; });
    if (at == bins_.end()) at = bins_.insert(bins_.end(), Bin{bin, 0, 0});
    ++at->count;
    at->sum_s += seconds;
  }
  std::uint64_t count() const { return count_; }
  double sum_s() const { return sum_s_; }
  double mean_s() const { return count_ == 0 ? 0 : sum_s_ / static_cast<double>(count_); }
  // The means of `parts` equal shares of the samples, from the shortest to the longest; their mean is
  // mean_s(). Within a bin (an eighth of an octave) all samples count as equal.
  std::vector<double> quantile_means_s(int parts) const {
    std::vector<Bin> bins = bins_;
    std::uint64_t zeros = count_;
    for (const Bin& bin : bins) zeros -= bin.count;
    bins.push_back({0, zeros, 0});
    std::sort(bins.begin(), bins.end(), [](const Bin& a, const Bin& b) { return a.bin < b.bin; });
    std::vector<double> means(static_cast<std::size_t>(parts), 0);
    const double share = static_cast<double>(count_) / parts;
    double before = 0;
    for (const Bin& bin : bins) {
      if (bin.count == 0) continue;
      const double end = before + static_cast<double>(bin.count);
      for (int part = 0; part < parts; ++part) {
        const double inside = std::min(end, share * (part + 1)) - std::max(before, share * part);
        if (inside > 0) {
          means[static_cast<std::size_t>(part)] += inside * bin.sum_s / static_cast<double>(bin.count) / share;
        }
      }
      before = end;
    }
    return means;
  }

 private:
  static constexpr int kBinShift = 20;  // of a float's bits: exponent and 3 bits of the mantissa are left
  struct Bin {
    std::uint32_t bin = 0;
    std::uint64_t count = 0;
    double sum_s = 0;
  };
  std::vector<Bin> bins_;  // in no order; few
  std::uint64_t count_ = 0;
  double sum_s_ = 0;
};

}  // namespace lbf::skeleton
