// Names to provisional ids: one map for all threads, fed a block of names at a time.
#pragma once

#include <array>

#include "graphscale/graph.hpp"

namespace gs {

/// Numbers each distinct name 0, 1, 2 ... in order of arrival (which varies with threads: hence provisional).
///
/// Canonical integers and other names live side by side in two kinds of tables, so that files of integers pay for 8
/// bytes a name and no two names ever merge. Both are cut into 256 shards by hash, each with a lock and a table of its
/// own. A thread collects the names of a block by shard (Batch) and resolves them shard by shard: the lock is taken
/// once per shard and block, a shard's table fits the cache while it is worked on, and growing it moves 1/256 of all.
class IdMap {
 public:
  static constexpr int kShards = 256;

  /// The names of one block, sorted by shard as they come. Keeps its storage between blocks.
  class Batch {
   public:
    Batch();
    void add(std::uint64_t number, std::uint32_t token);   ///< the name at place `token` of the block
    void add(std::string_view word, std::uint32_t token);  ///< not a canonical integer; must live until resolved

   private:
    friend class IdMap;
    struct Number {
      std::uint64_t mixed;
      std::uint32_t token;
    };
    struct Word {
      std::string_view text;
      std::uint64_t hash;
      std::uint32_t token;
    };
    std::array<std::vector<Number>, kShards> numbers_;
    std::array<std::vector<Word>, kShards> words_;
    int first_shard_;  ///< where this batch's rounds begin: threads in step would queue for the same lock
  };

  /// Throws input from `resolve` once there are more than max_nodes names.
  explicit IdMap(Offset max_nodes = kMaxRows);
  ~IdMap();

  /// ids[token] = the id of the batch's name at `token`, new where the name is; empties the batch. From any thread.
  void resolve(Batch& batch, RowId* ids);

  Offset size() const { return next_id_.load(); }

  /// All names by id: numbers where every name is one, else bytes and bounds. Empties the map as it goes.
  BuiltGraph take_names(int threads);

 private:
  struct NumberTable;
  struct WordTable;
  struct Shard;
  RowId new_id();

  const Offset max_nodes_;
  std::atomic<Offset> next_id_{0};
  std::unique_ptr<Shard[]> shards_;
};

}  // namespace gs
