// The tables of DIR/results.db and how an older file becomes a current one.
#ifndef ASSAY_COORDINATOR_STORE_SCHEMA_H_
#define ASSAY_COORDINATOR_STORE_SCHEMA_H_

#include <string>

#include "absl/status/status.h"
#include "coordinator/store/sqlite.h"

namespace assay {

// Version of the tables, in the table `schema_version`. Columns of `results` follow
// catalog/fields.yaml and need no version of their own: a new field becomes a column on opening.
inline constexpr int kSchemaVersion = 7;

// Brings the file to `version`, in one transaction, and adds columns of fields that it lacks.
// FailedPrecondition for a file of a newer version, or one that holds other tables.
// Tests pass an older version to make an old file.
absl::Status MigrateSchema(SqliteDatabase& database, int version = kSchemaVersion);

// `"name"` as SQL takes it.
std::string QuotedColumn(std::string_view name);

}  // namespace assay

#endif  // ASSAY_COORDINATOR_STORE_SCHEMA_H_
