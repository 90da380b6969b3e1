#include "tools/skeleton/record.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/whole_file.h"
#include "tools/skeleton/statistics.h"

namespace lbf::tools {
namespace {

constexpr int kVersion = 1;
constexpr std::size_t kMostRuns = 200;

nlohmann::json json_of(const SkeletonTimes& times) {
  return {{"when", times.when},
          {"nodes", times.nodes},
          {"launcher", times.launcher},
          {"times_s", times.times_s},
          {"rate", times.rate}};
}

SkeletonTimes times_from(const nlohmann::json& json) {
  SkeletonTimes times;
  json.at("when").get_to(times.when);
  json.at("nodes").get_to(times.nodes);
  json.at("launcher").get_to(times.launcher);
  json.at("times_s").get_to(times.times_s);
  json.at("rate").get_to(times.rate);
  for (const Seconds each : times.times_s) {
    if (!(each > 0) || !std::isfinite(each)) throw std::invalid_argument("a run time that is not above 0");
  }
  if (times.times_s.empty()) throw std::invalid_argument("runs without times");
  return times;
}

}  // namespace

double SkeletonRecord::ratio() const {
  const std::vector<Seconds> one{1.0};
  return scaled_ratio(application_s, one, reference->times_s).value;
}

std::string record_path(const std::string& skeleton) {
  return (skeleton.ends_with(".c") ? skeleton.substr(0, skeleton.size() - 2) : skeleton) + +".runs.json";
}

Result<SkeletonRecord> read_record(const std::string& path, const std::string& id) {
  SkeletonRecord record;
  record.id = id;
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    if (errno == ENOENT) return record;
    return Error{ErrorCode::kIo, path + ": cannot read: " + std::strerror(errno)};
  }
  try {
    const nlohmann::json json = nlohmann::json::parse(in);
    if (json.at("lbf_skeleton_runs").get<int>() != kVersion)
      return invalid_input(path + ": a file of runs of another version of lbf; remove it");
    if (json.at("id").get<std::string>() != id) return record;
    json.at("application_s").get_to(record.application_s);
    if (json.contains("reference")) record.reference = times_from(json["reference"]);
    for (const nlohmann::json& each : json.at("runs")) record.runs.push_back(times_from(each));
    if (record.reference && !(record.application_s > 0))
      throw std::invalid_argument("a reference without the application's time");
  } catch (const std::exception& error) {
    return invalid_input(path + ": not a file of runs (" + error.what() + "); remove it");
  }
  return record;
}

Result<void> write_record(const std::string& path, const SkeletonRecord& record) {
  nlohmann::json json = {{"lbf_skeleton_runs", kVersion},
                         {"id", record.id},
                         {"application_s", record.application_s},
                         {"runs", nlohmann::json::array()}};
  if (record.reference) {
    json["reference"] = json_of(*record.reference);
    json["ratio"] = record.ratio();
  }
  const std::size_t first = record.runs.size() > kMostRuns ? record.runs.size() - kMostRuns : 0;
  for (std::size_t i = first; i < record.runs.size(); ++i) json["runs"].push_back(json_of(record.runs[i]));
  return write_whole_file(path, json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace lbf::tools
