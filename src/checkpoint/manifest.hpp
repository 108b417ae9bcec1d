// manifest.json: where a run stands, and what files its checkpoint has.
#pragma once

#include "graphscale/checkpoint.hpp"

namespace gs {

inline constexpr const char *kManifest = "manifest.json", *kNamesFile = "names.txt", *kRelationsFile = "relations.txt",
                            *kFinished = "finished.npy";

FileSum sum_of(const fs::path& file);  ///< reads it; throws input

struct ShardEntry {
  std::string name;
  Offset rows = 0;
};

struct Manifest {
  RunState state;  ///< its config lies in a file of its own
  std::vector<std::string> tables;
  std::vector<ShardEntry> shards;
  std::vector<FileSum> files;
};

/// What one rank has written; rank 0 makes them into a manifest.
struct ShardList {
  std::vector<ShardEntry> shards;
  std::vector<std::string> tables;
  std::vector<FileSum> files;
};

std::string to_text(const Manifest& manifest);
std::string to_text(const ShardList& list);

/// Throws input, naming `path`: no JSON, a missing or senseless value, a checksum that differs, a newer format, a name
/// that is no plain file name.
Manifest read_manifest(const fs::path& path);
ShardList read_shard_list(const fs::path& path);

std::string rows_file(const std::string& shard);  ///< "shard-0003.rows.npy"
std::string table_file(const std::string& shard, const std::string& table);

}  // namespace gs
