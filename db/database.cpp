// Database, see database.h.
#include "db/database.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <sqlite3.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string_view>
#include <utility>

#include "db/migrations.h"

namespace lbf::db {
namespace {

// Above this a full check at every start would take too long; damage then shows when a page is used.
constexpr long long kFullCheckLimitBytes = 256LL << 20;

// A list of a thousand steps reads some ten thousand pages of 4 KiB that lie apart; sqlite's 2 MB would ask the system
// for each of them, each time.
constexpr int kCacheKib = 64 << 10;

// sqlite has a code of its own for a full disk, but not for every file of its: the index of the log cannot
// grow, and it is an I/O error or a file that cannot be opened.
bool is_for_want_of_room(const std::string& path, sqlite3* handle) {
  const int system_error = handle == nullptr ? 0 : sqlite3_system_errno(handle);
  if (system_error == ENOSPC || system_error == EDQUOT || system_error == EFBIG) return true;
  constexpr std::uint64_t kLeastBytes = 64 << 10;  // the index grows by 32 KiB
  struct statvfs room {};
  const std::string directory = path.substr(0, path.rfind('/') + 1);
  return ::statvfs(directory.empty() ? "." : directory.c_str(), &room) == 0 &&
         static_cast<std::uint64_t>(room.f_bavail) * room.f_frsize < kLeastBytes;
}

Error error_of(const std::string& path, const SQLite::Exception& exception, sqlite3* handle = nullptr) {
  const std::string what = path + ": " + exception.what();
  const int code = exception.getErrorCode();
  if (code == SQLITE_FULL || ((code == SQLITE_IOERR || code == SQLITE_CANTOPEN) && is_for_want_of_room(path, handle))) {
    return {ErrorCode::kLimit, what + ": free space on its file system"};
  }
  switch (code) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {ErrorCode::kUnavailable,
              what + ": another program holds it; a backup should use 'sqlite3 " + path + " \".backup FILE\"'"};
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return invalid_input(what +
                           ": the database is damaged: put back a backup, or move it away (lbfd then "
                           "predicts the steps anew whose traces are still stored)");
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_READONLY:
      return {ErrorCode::kPermission, what + ": lbfd's user must own its state directory"};
    case SQLITE_IOERR:
      return {ErrorCode::kIo, what + ": see the kernel's log"};
    default:
      return {ErrorCode::kInternal, what};
  }
}

int user_version(SQLite::Database& connection) {
  return connection.execAndGet("PRAGMA user_version").getInt();
}

Result<int> known_version(const std::string& path, int found) {
  const int known = migrations().back().number;
  if (found <= known) return found;
  return invalid_input(path + ": schema version " + std::to_string(found) + ", this lbfd knows up to " +
                       std::to_string(known) + ": start the lbfd that wrote it, or a newer one");
}

// What ends a path in an URI.
std::string in_uri(std::string_view path) {
  std::string out;
  for (const char c : path) out += c == '%' ? "%25" : c == '?' ? "%3f" : c == '#' ? "%23" : std::string(1, c);
  return out;
}

}  // namespace

Database::Database(std::string path, std::unique_ptr<SQLite::Database> connection, bool created)
    : path_(std::move(path)), connection_(std::move(connection)), created_(created) {}

Database::~Database() = default;

Result<std::unique_ptr<Database>> Database::open(const std::string& path, std::chrono::milliseconds busy_timeout) {
  try {
    const bool created = ::access(path.c_str(), F_OK) != 0;
    // mutex_ is around every use of it: sqlite's own, taken for each column that is read, would be a tenth of a list.
    auto connection =
        std::make_unique<SQLite::Database>(path, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE | SQLite::OPEN_NOMUTEX,
                                           static_cast<int>(busy_timeout.count()));
    connection->exec("PRAGMA foreign_keys = ON");
    // With WAL, NORMAL can lose the last transactions when the power fails: the trace store has them, and the
    // predictions are made again from there.
    // Before the first table: later only rebuild() can set it.
    if (created) connection->exec("PRAGMA auto_vacuum = INCREMENTAL");
    connection->exec("PRAGMA journal_mode = WAL");
    connection->exec("PRAGMA synchronous = NORMAL");
    connection->exec("PRAGMA cache_size = -" + std::to_string(kCacheKib));
    const long long bytes =
        connection->execAndGet("PRAGMA page_count").getInt64() * connection->execAndGet("PRAGMA page_size").getInt64();
    if (bytes <= kFullCheckLimitBytes) {
      const std::string checked = connection->execAndGet("PRAGMA quick_check(1)").getString();
      if (checked != "ok") {
        return error_of(path, SQLite::Exception("quick_check says " + checked, SQLITE_CORRUPT));
      }
    }
    std::unique_ptr<Database> database(new Database(path, std::move(connection), created));
    if (auto migrated = database->migrate(); !migrated) return migrated.error();
    return database;
  } catch (const SQLite::Exception& exception) {
    return error_of(path, exception);
  }
}

Result<int> Database::stored_schema_version(const std::string& path) {
  if (::access(path.c_str(), F_OK) != 0 && errno == ENOENT) return 0;
  // A log beside the file has what the file has not yet. Where there is none sqlite would make one to read.
  const bool has_log = ::access((path + "-wal").c_str(), F_OK) == 0;
  try {
    SQLite::Database connection("file:" + in_uri(path) + (has_log ? "?mode=ro" : "?immutable=1"),
                                SQLite::OPEN_READONLY | SQLite::OPEN_URI);
    return known_version(path, user_version(connection));
  } catch (const SQLite::Exception& exception) {
    return error_of(path, exception);
  }
}

Result<void> Database::migrate() {
  const int found = schema_version();
  if (auto known = known_version(path_, found); !known) return known.error();
  if (found == migrations().back().number) return {};
  // A migration that makes a table anew must not delete what refers to its rows; inside a transaction sqlite takes no
  // change of this.
  write_pragma("foreign_keys = OFF");
  for (const Migration& migration : migrations()) {
    if (migration.number <= found) continue;
    auto done = write([&](SQLite::Database& connection) {
      connection.exec(migration.sql);
      connection.exec("PRAGMA user_version = " + std::to_string(migration.number));
    });
    if (!done) {
      return Error{done.error().code, std::string("migration ") + migration.name + " failed: " + done.error().message};
    }
  }
  write_pragma("foreign_keys = ON");
  return {};
}

void Database::write_pragma(const char* pragma) {
  const MutexLock lock(mutex_);
  connection_->exec(std::string("PRAGMA ") + pragma);
}

int Database::schema_version() const {
  const MutexLock lock(mutex_);
  return user_version(*connection_);
}

Result<std::uint64_t> Database::give_back(int pages) {
  const MutexLock lock(mutex_);
  constexpr int kIncremental = 2;
  try {
    if (connection_->execAndGet("PRAGMA auto_vacuum").getInt() != kIncremental) return std::uint64_t{0};
    // One row per page that is given back: all have to be taken.
    SQLite::Statement vacuum(*connection_, "PRAGMA incremental_vacuum(" + std::to_string(pages) + ")");
    while (vacuum.executeStep()) {
    }
    return static_cast<std::uint64_t>(connection_->execAndGet("PRAGMA freelist_count").getInt64());
  } catch (const SQLite::Exception& exception) {
    return error_of(path_, exception, connection_->getHandle());
  }
}

Result<void> Database::rebuild() {
  const MutexLock lock(mutex_);
  try {
    connection_->exec("PRAGMA auto_vacuum = INCREMENTAL");
    connection_->exec("VACUUM");
    connection_->exec("PRAGMA wal_checkpoint(TRUNCATE)");
    return {};
  } catch (const SQLite::Exception& exception) {
    return error_of(path_, exception, connection_->getHandle());
  }
}

Result<void> Database::run(const char* begin, const std::function<void(SQLite::Database&)>& work) {
  const MutexLock lock(mutex_);
  try {
    connection_->exec(begin);
  } catch (const SQLite::Exception& exception) {
    return error_of(path_, exception, connection_->getHandle());
  }
  try {
    work(*connection_);
    connection_->exec("COMMIT");
    return {};
  } catch (const SQLite::Exception& exception) {
    const Error error = error_of(path_, exception, connection_->getHandle());
    // sqlite has rolled back by itself after some errors; then there is nothing left to roll back.
    connection_->tryExec("ROLLBACK");
    return error;
  } catch (...) {
    connection_->tryExec("ROLLBACK");
    throw;
  }
}

Result<void> Database::write(const std::function<void(SQLite::Database&)>& work) {
  return run("BEGIN IMMEDIATE", work);
}

Result<void> Database::read(const std::function<void(SQLite::Database&)>& work) {
  return run("BEGIN", work);
}

}  // namespace lbf::db
