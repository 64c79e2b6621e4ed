#include "runners/common/cell_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <system_error>

#include "runners/common/bad_input.h"

namespace assay {
namespace {

std::string ReadToEnd(int fd, const std::string& name) {
  std::string text;
  char buffer[16384];
  for (;;) {
    const ssize_t count = read(fd, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      throw BadInput("cannot read cell file " + name + ": " +
                     std::generic_category().message(errno));
    if (count == 0) return text;
    text.append(buffer, static_cast<size_t>(count));
    if (text.size() > kMaxCellFileBytes) {
      throw BadInput("cell file " + name + " is over 1 MiB: give the JSON of a single cell");
    }
  }
}

std::string LineAndColumn(const std::string& text, size_t byte) {
  size_t line = 1, column = 1;
  for (size_t i = 0; i + 1 < byte && i < text.size(); ++i) {
    if (text[i] == '\n') {
      ++line;
      column = 1;
    } else {
      ++column;
    }
  }
  return std::to_string(line) + ":" + std::to_string(column);
}

// nlohmann's parser recurses only into its own heap stack, but destroying and reading a document
// that deep is of no use either: a cell file nests four levels.
void RefuseDeepNesting(const std::string& text, const std::string& name) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (++depth > 32) throw BadInput("cell file " + name + " nests deeper than 32 levels");
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
}

void Require(bool holds, const std::string& name, const std::string& sentence) {
  if (!holds) throw BadInput("cell file " + name + ": " + sentence);
}

void CheckRanges(const CellFile& c, const std::string& name) {
  Require(c.protocol == kRunnerProtocol, name,
          "protocol " + std::to_string(c.protocol) + ", but this runner speaks protocol " +
              std::to_string(kRunnerProtocol) + ": use an agent and a runner of one version");
  Require(!c.spec.model.empty(), name, "spec.model is missing: name one of --list");
  Require(c.spec.batch >= 0 && c.spec.batch <= (int64_t{1} << 31), name,
          "spec.batch must be 0 (max) or a number from 1 to 2147483648");
  Require(c.spec.accumulate >= 1, name, "spec.accumulate must be at least 1");
  Require(c.spec.batch % c.spec.accumulate == 0, name,
          "spec.accumulate must divide spec.batch, since micro-batch = batch / accumulate");
  Require(c.world_size >= 1 && c.world_size <= 65536, name, "world_size must be from 1 to 65536");
  Require(c.rank >= 0 && c.rank < c.world_size, name, "rank must be from 0 to world_size - 1");
  Require(c.local_rank >= 0 && c.local_rank <= c.rank, name, "local_rank must be from 0 to rank");
  Require(c.world_size == 1 || !c.endpoint.empty(), name,
          "endpoint is missing: with world_size above 1 name host:port of rank 0");
  Require(c.trial_steps >= 0 && c.trial_steps <= 1'000'000, name,
          "trial_steps must be from 0 to 1000000");
  const StopRule& stop = c.spec.stop;
  Require(std::isfinite(stop.confidence) && stop.confidence >= 0 && stop.confidence < 1, name,
          "spec.stop.confidence must be from 0 to below 1");
  Require(std::isfinite(stop.min_seconds) && stop.min_seconds >= 0 &&
              std::isfinite(stop.max_seconds) && stop.max_seconds > 0 &&
              stop.max_seconds >= stop.min_seconds && stop.max_seconds <= 604800,
          name, "spec.stop needs 0 <= min_seconds <= max_seconds <= 604800");
}

}  // namespace

CellFile ReadCellFile(const std::string& path) {
  if (path == "-") return ParseCellFile(ReadToEnd(STDIN_FILENO, "-"), "-");
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    throw BadInput("cannot open cell file " + path + ": " + std::generic_category().message(errno));
  struct Closer {
    int fd;
    ~Closer() { close(fd); }
  } closer{fd};
  return ParseCellFile(ReadToEnd(fd, path), path);
}

CellFile ParseCellFile(const std::string& text, const std::string& name) {
  RefuseDeepNesting(text, name);
  CellFile cell;
  try {
    const nlohmann::json document = nlohmann::json::parse(text);
    if (!document.is_object()) throw BadInput("cell file " + name + " is not a JSON object");
    Require(document.contains("spec") && document["spec"].is_object(), name,
            "the object 'spec' is missing");
    for (const auto& [object, key] : {std::pair{&document, "device"},
                                      {&document.at("spec"), "stop"},
                                      {&document.at("spec"), "limits"}}) {
      Require(!object->contains(key) || object->at(key).is_object(), name,
              std::string("'") + key + "' must be an object");
    }
    cell = CellFileFromJson(document);
  } catch (const nlohmann::json::parse_error& error) {
    throw BadInput(name + ":" + LineAndColumn(text, error.byte) +
                   ": the cell file is not valid JSON at this place");
  } catch (const nlohmann::json::exception& error) {
    throw BadInput("cell file " + name + ": a value has the wrong type (" + error.what() + ")");
  }
  CheckRanges(cell, name);
  return cell;
}

}  // namespace assay
