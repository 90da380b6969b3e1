// NetworkCatalog: the networks that lbfd predicts for, from networks_dir/*.toml, and which of them the
// cluster itself has.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "predictor/engine/network/network.h"

namespace lbf::daemon {

// The nominal networks that are predicted where nobody described one: a slow, a middling and a fast one.
inline constexpr std::array<std::string_view, 3> kStandIns{"nominal-1gbe", "nominal-25gbe", "nominal-hdr"};

class NetworkCatalog {
 public:
  // Loads every *.toml of `directory` (one that does not exist has none) and of its folder `nominal`, whose
  // networks are used only where somebody names them. `own`: name of the cluster's own
  // network; empty: the one in default.toml or named "default", else the only one, else "zero", with a note.
  // Errors name the file or the key: a bad file, two files with one name, `own` is not there.
  static Result<NetworkCatalog> load(const std::string& directory, const std::string& own);

  std::shared_ptr<const engine::Network> own() const { return own_; }
  // What select() knows, without repetition.
  std::vector<std::string> names() const;
  const std::string& own_note() const { return own_note_; }  // empty, or why `own` is a guess

  struct Selection {
    std::vector<std::shared_ptr<const engine::Network>> networks;
    std::vector<std::string> notes;
  };
  // The user's --lbf-networks; none: all of the directory but the nominal ones. Where no network is described that is
  // "zero", of which times on several nodes are bounds, and the nominal ones that stand in for it (kStandIns).
  Selection select(const std::vector<std::string>& wanted) const;

 private:
  std::shared_ptr<const engine::Network> find(const std::string& name) const;

  std::map<std::string, std::shared_ptr<const engine::Network>> networks_;  // without "zero", unless a file is named so
  std::map<std::string, std::shared_ptr<const engine::Network>> nominal_;
  std::shared_ptr<const engine::Network> zero_;
  std::shared_ptr<const engine::Network> own_;
  std::string own_note_;
};

}  // namespace lbf::daemon
