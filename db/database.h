// Database: lbfd's sqlite file (design decision 10: one writer, WAL, migrations).
//
// Place in the event's way: metrics -> *db* -> lbf-report. Only lbfd opens the file; clients ask lbfd.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "base/result.h"

namespace SQLite {
class Database;
}

namespace lbf::db {

// Thread-safe: one connection, one user at a time.
class Database {
 public:
  // Opens or creates `path` and brings an older schema up to date. `busy_timeout`: how long to wait for
  // another program (a backup) that has it locked. Errors: kInvalidInput (not a database, damaged, or written
  // by a newer lbfd), kUnavailable (locked for longer), kPermission, kIo.
  static Result<std::unique_ptr<Database>> open(const std::string& path,
                                                std::chrono::milliseconds busy_timeout = std::chrono::seconds(10));
  // Which schema the file has, whoever writes it meanwhile; 0: there is no file. Nothing is written.
  // Errors: kInvalidInput (not a database, or of a newer lbfd), kPermission, kIo.
  static Result<int> stored_schema_version(const std::string& path);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  const std::string& path() const { return path_; }
  bool created() const { return created_; }  // there was no file: earlier predictions are not in it
  int schema_version() const;

  // Gives up to `pages` pages that hold nothing any more back to the file system; returns how many are left (0 too
  // where the file was made by an lbf that had no retention of steps: rebuild() changes that). Errors: as write.
  Result<std::uint64_t> give_back(int pages);
  // Writes the whole file anew, without holes. Needs its size in free space again, and time; nobody else may have
  // the file open. Errors: as write.
  Result<void> rebuild();

  // Runs `work` in one transaction: all of it or nothing. sqlite's exceptions become errors.
  Result<void> write(const std::function<void(SQLite::Database&)>& work);
  Result<void> read(const std::function<void(SQLite::Database&)>& work);

 private:
  Database(std::string path, std::unique_ptr<SQLite::Database> connection, bool created);
  Result<void> migrate();
  void write_pragma(const char* pragma);
  Result<void> run(const char* begin, const std::function<void(SQLite::Database&)>& work);

  std::string path_;
  mutable Mutex mutex_;
  std::unique_ptr<SQLite::Database> connection_ PT_GUARDED_BY(mutex_);
  bool created_;
};

}  // namespace lbf::db
