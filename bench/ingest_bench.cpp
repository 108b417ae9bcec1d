// Ingest from text to rows: MB/s, lines/s and peak memory, one JSON line a case.
//
//   ingest_bench [--edges N] [--threads T] [--folder DIR]
//
// Cases: integers of 8 digits, about 18 bytes a line, 20 edges a node; the same with as many nodes as edges (the worst
// case for memory: names and offsets weigh more than edges); names user_<n>, 20 edges a node; the first case in gzip.
// MB/s = bytes of (unpacked) text / seconds of ingest(), which ends with the graph in memory. peak_ratio = growth of
// the peak resident set over the process before ingest / (8 bytes x edges). Each case runs in a child process of its
// own.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <random>

#include "graphscale/graph.hpp"

namespace {

using gs::Offset;

struct Case {
  const char* name;
  const char* prefix;
  Offset first_id;  // ids are first_id .. first_id + nodes
  double edges_a_node;
  bool gzip;
};

constexpr Case kCases[] = {{"integers", "", 10'000'000, 20, false},
                           {"integers, a node an edge", "", 10'000'000, 1, false},
                           {"names", "user_", 0, 20, false},
                           {"integers, gzip", "", 10'000'000, 20, true}};

Offset write_edges(const gs::fs::path& path, const Case& c, Offset edges) {
  std::mt19937_64 random(1);
  const auto nodes = std::uint64_t(std::max(2.0, double(edges) / c.edges_a_node));
  const auto end = [&] { return (unsigned long long)(c.first_id) + random() % nodes; };
  gs::OutputFile out(path);
  Offset bytes = 0;
  char line[96];
  for (Offset e = 0; e < edges; ++e) {
    const auto from = end(), to = end();
    const int length = std::snprintf(line, sizeof line, "%s%llu\t%s%llu\n", c.prefix, from, c.prefix, to);
    out.write(line, length);
    bytes += length;
  }
  out.commit();
  return bytes;
}

rusage own_usage() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage;
}

Offset peak_bytes() { return Offset(own_usage().ru_maxrss) * 1024; }

double cpu_s() {
  const auto seconds = [](const timeval& t) { return double(t.tv_sec) + 1e-6 * double(t.tv_usec); };
  return seconds(own_usage().ru_utime) + seconds(own_usage().ru_stime);
}

void measure(const gs::fs::path& path, const Case& c, Offset text_bytes, int threads) {
  gs::IngestOptions options;
  options.threads = threads;
  gs::IngestCounts counts;
  const Offset before = peak_bytes();
  const double start_s = gs::now_s(), start_cpu_s = cpu_s();
  const gs::BuiltGraph graph = gs::ingest({path}, options, counts);
  const double spent_s = gs::now_s() - start_s, spent_cpu_s = cpu_s() - start_cpu_s;
  const Offset peak = peak_bytes() - before, binary = 8 * counts.edges;
  std::printf(
      "{\"bench\": \"ingest\", \"case\": \"%s\", \"threads\": %d, \"edges\": %lld, \"nodes\": %lld, \"text_bytes\": "
      "%lld, "
      "\"seconds\": %.3f, \"cpu_seconds\": %.3f, \"mb_per_s\": %.1f, \"lines_per_s\": %.0f, \"peak_bytes\": %lld, "
      "\"peak_ratio\": %.2f}\n",
      c.name, threads, (long long)counts.edges, (long long)graph.csr().num_nodes(), (long long)text_bytes, spent_s,
      spent_cpu_s, double(text_bytes) / spent_s / 1e6, double(counts.lines) / spent_s, (long long)peak,
      double(peak) / double(binary));
  std::fflush(stdout);
}

/// In a child process, so that one case's peak does not hide the next one's. False where it failed.
bool measure_apart(const gs::fs::path& path, const Case& c, Offset text_bytes, int threads) {
  const pid_t child = fork();
  if (child == 0) {
    try {
      measure(path, c, text_bytes, threads);
      _exit(0);
    } catch (const std::exception& error) {
      gs::log_error(error.what());
      _exit(1);
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool run_case(const Case& c, Offset edges, int threads, const gs::fs::path& folder) {
  gs::fs::path path = folder / "ingest_bench.tsv";
  const Offset bytes = write_edges(path, c, edges);
  if (c.gzip) {
    if (std::system(("gzip -1 -f '" + path.string() + "'").c_str()) != 0) return false;
    path += ".gz";
  }
  const bool done = measure_apart(path, c, bytes, threads);
  gs::fs::remove(path);
  return done;
}

}  // namespace

int main(int argc, char** argv) {
  Offset edges = 10'000'000;
  int threads = gs::hardware_threads();
  gs::fs::path folder = gs::fs::temp_directory_path();
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--edges") edges = std::atoll(argv[i + 1]);
    if (name == "--threads") threads = std::atoi(argv[i + 1]);
    if (name == "--folder") folder = argv[i + 1];
  }
  gs::set_quiet(true);
  bool all = true;
  for (const Case& c : kCases) all = run_case(c, edges, threads, folder) && all;
  return all ? 0 : 1;
}
