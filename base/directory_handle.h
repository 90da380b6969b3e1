// A directory that is read, closed at the end of its scope (opendir(3)).
#pragma once

#include <dirent.h>

#include "base/unique_handle.h"

namespace lbf {

struct CloseDirectory {
  void operator()(DIR* directory) const noexcept { ::closedir(directory); }
};
using DirectoryHandle = UniqueHandle<DIR*, CloseDirectory>;

}  // namespace lbf
