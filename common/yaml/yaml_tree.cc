#include "common/yaml/yaml_tree.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <exception>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "common/yaml/utf8_sequence.h"

namespace assay {
namespace {

// Leaves yaml-cpp's parser at once; caught in ParseYaml, never seen outside.
struct Refused {
  Position at;
  std::string path;
  std::string what;
};

std::string TooDeep(const YamlLimits& limits) {
  return fmt::format("nested deeper than {} levels; flatten it", limits.depth);
}

Position PositionOf(const YAML::Mark& mark) {
  if (mark.is_null()) return {};
  return {mark.line + 1, mark.column + 1};
}

class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(const YamlLimits& limits, Diagnostics* diagnostics)
      : limits_(limits), diagnostics_(diagnostics) {}

  YamlPtr root() const { return root_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) {
      throw Refused{PositionOf(mark), "", "a second document starts here; keep one to a file"};
    }
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Leaf(mark, anchor, "", false, YamlNode::Kind::kNull);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    RefuseTag(mark, tag);
    const bool quoted = tag == "!";
    const bool null = !quoted && (value.empty() || value == "~" || value == "null");
    Leaf(mark, anchor, value, quoted, null ? YamlNode::Kind::kNull : YamlNode::Kind::kScalar);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      throw Refused{PositionOf(mark), Path(),
                    "the alias refers to an anchor that holds it; write the value out"};
    }
    const YamlPtr target = found->second;
    Charge(mark, target->weight, static_cast<int>(frames_.size()) + target->height);
    Put(mark, target);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, YamlNode::Kind::kList);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, YamlNode::Kind::kMap);
  }
  void OnMapEnd() override { Close(); }

 private:
  struct Frame {
    std::shared_ptr<YamlNode> node;
    YAML::anchor_t anchor = 0;
    bool has_key = false;
    std::string key;
    Position key_at;
    std::set<std::string> seen;
  };

  void RefuseTag(const YAML::Mark& mark, const std::string& tag) const {
    if (tag.empty() || tag == "?" || tag == "!") return;
    throw Refused{PositionOf(mark), Path(), fmt::format("tag '{}' is not read; leave it out", tag)};
  }

  void Charge(const YAML::Mark& mark, size_t nodes, int depth) {
    if (depth > limits_.depth) {
      throw Refused{PositionOf(mark), "", TooDeep(limits_)};
    }
    nodes_ += nodes;
    if (nodes > limits_.nodes || nodes_ > limits_.nodes) {
      throw Refused{PositionOf(mark), "",
                    fmt::format("more than {} values, aliases counted as often as used; use "
                                "ranges or several files",
                                limits_.nodes)};
    }
  }

  void Leaf(const YAML::Mark& mark, YAML::anchor_t anchor, const std::string& text, bool quoted,
            YamlNode::Kind kind) {
    Charge(mark, 1, static_cast<int>(frames_.size()) + 1);
    auto node = std::make_shared<YamlNode>();
    node->kind = kind;
    node->quoted = quoted;
    node->at = PositionOf(mark);
    node->text = text;
    // Where nothing is written, yaml-cpp stands at whatever comes next.
    if (kind == YamlNode::Kind::kNull && text.empty() && !frames_.empty() &&
        frames_.back().has_key && node->at.line > frames_.back().key_at.line) {
      node->at = frames_.back().key_at;
    }
    if (anchor != 0) anchors_[anchor] = node;
    Put(mark, node);
  }

  void Open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            YamlNode::Kind kind) {
    RefuseTag(mark, tag);
    Charge(mark, 1, static_cast<int>(frames_.size()) + 1);
    if (WantsKey()) {
      throw Refused{PositionOf(mark), Path(), "a key is a list or a map; write a plain word"};
    }
    Frame frame;
    frame.node = std::make_shared<YamlNode>();
    frame.node->kind = kind;
    frame.node->at = PositionOf(mark);
    frame.anchor = anchor;
    frames_.push_back(std::move(frame));
  }

  void Close() {
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    // Known only from here on: an alias inside its own anchor finds nothing.
    if (frame.anchor != 0) anchors_[frame.anchor] = frame.node;
    Put({}, std::move(frame.node));
  }

  bool WantsKey() const {
    return !frames_.empty() && frames_.back().node->IsMap() && !frames_.back().has_key;
  }

  void Put(const YAML::Mark& mark, YamlPtr node) {
    if (frames_.empty()) {
      root_ = std::move(node);
      return;
    }
    if (WantsKey()) {
      PutKey(mark, *node);
      return;
    }
    Frame& frame = frames_.back();
    frame.node->weight += node->weight;
    frame.node->height = std::max(frame.node->height, node->height + 1);
    if (frame.node->IsList()) {
      frame.node->items.push_back(std::move(node));
      return;
    }
    frame.has_key = false;
    if (!frame.seen.insert(frame.key).second) {
      diagnostics_->Add(frame.key_at, JoinPath(Path(), frame.key),
                        "this key is given twice; keep one of them");
      return;
    }
    frame.node->entries.push_back({frame.key, frame.key_at, std::move(node)});
  }

  void PutKey(const YAML::Mark& mark, const YamlNode& node) {
    if (!node.IsScalar() && !node.IsNull()) {
      throw Refused{PositionOf(mark), Path(), "a key is a list or a map; write a plain word"};
    }
    if (node.text == "<<" && !node.quoted) {
      throw Refused{node.at, Path(), "merge keys (<<) are not read; write the keys out"};
    }
    Frame& frame = frames_.back();
    frame.has_key = true;
    frame.key = node.IsNull() ? "null" : node.text;
    frame.key_at = mark.is_null() ? node.at : PositionOf(mark);
  }

  std::string Path() const {
    std::string path;
    for (size_t i = 0; i < frames_.size(); ++i) {
      const Frame& frame = frames_[i];
      if (frame.node->IsList()) {
        path += fmt::format("[{}]", frame.node->items.size());
      } else if (frame.has_key) {
        path = JoinPath(path, frame.key);
      }
    }
    return path;
  }

  const YamlLimits limits_;
  Diagnostics* const diagnostics_;
  std::vector<Frame> frames_;
  std::map<YAML::anchor_t, YamlPtr> anchors_;
  YamlPtr root_;
  size_t nodes_ = 0;
  int documents_ = 0;
};

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Brackets that are open, by a crude count that knows comments but no quotes: yaml-cpp takes long
// rows of open brackets for keys and says something else of them. Nobody writes that many in
// quotes.
class BracketCount {
 public:
  // The count after `c`, with `before` in front of it.
  int Add(char c, char before) {
    if (c == '\n') comment_ = false;
    if (c == '#' && (before == '\n' || before == ' ' || before == '\t')) comment_ = true;
    if (comment_) return open_;
    if (c == '[' || c == '{') ++open_;
    if ((c == ']' || c == '}') && open_ > 0) --open_;
    return open_;
  }

 private:
  int open_ = 0;
  bool comment_ = false;
};

// What yaml-cpp would read wrongly or not notice. Throws Refused.
void Scan(std::string_view text, const YamlLimits& limits) {
  int line = 1;
  size_t line_start = 0;
  bool indent = true;
  BracketCount brackets;
  for (size_t i = 0; i < text.size();) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    const Position at{line, static_cast<int>(i - line_start) + 1};
    if (brackets.Add(text[i], i > 0 ? text[i - 1] : '\n') > limits.depth) {
      throw Refused{at, "", TooDeep(limits)};
    }
    if (i - line_start >= limits.line_bytes && c != '\n') {
      throw Refused{at, "",
                    fmt::format("a line is longer than {} bytes; break it", limits.line_bytes)};
    }
    const size_t length = Utf8SequenceLength(text.substr(i));
    if (length == 0) {
      throw Refused{at, "", fmt::format("byte 0x{:02X} is not UTF-8; save the file as UTF-8", c)};
    }
    if (c == 0) throw Refused{at, "", "a NUL byte; this is no text file, or it is damaged"};
    if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F) {
      throw Refused{at, "", fmt::format("control character 0x{:02X}; take it out", c)};
    }
    if (indent && c == '\t') {
      throw Refused{at, "", "a tab indents this line; YAML wants spaces"};
    }
    if (indent && c != ' ') indent = false;
    i += length;
    if (c == '\n') {
      ++line;
      line_start = i;
      indent = true;
    }
  }
}

void Build(std::string_view text, TreeBuilder* builder) {
  std::istringstream stream{std::string(text)};
  YAML::Parser parser(stream);
  while (parser.HandleNextDocument(*builder)) {
  }
}

}  // namespace

const YamlEntry* YamlNode::Find(std::string_view key) const {
  for (const YamlEntry& entry : entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

YamlPtr ParseYaml(std::string_view text, const YamlLimits& limits, Diagnostics* diagnostics) {
  if (text.size() > limits.bytes) {
    diagnostics->Add(
        {1, 1}, "", fmt::format("larger than {} bytes; use ranges or several files", limits.bytes));
    return nullptr;
  }
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  try {
    Scan(text, limits);
    TreeBuilder builder(limits, diagnostics);
    Build(text, &builder);
    if (builder.root() == nullptr) {
      diagnostics->Add({1, 1}, "", "the file is empty; write at least one key");
    }
    return diagnostics->empty() ? builder.root() : nullptr;
  } catch (const Refused& refused) {
    diagnostics->Add(refused.at, refused.path, refused.what);
  } catch (const YAML::Exception& error) {
    diagnostics->Add(
        PositionOf(error.mark), "",
        fmt::format("not YAML: {}; look at the brackets, quotes and indentation here", error.msg));
  } catch (const std::exception& error) {
    diagnostics->Add({1, 1}, "", fmt::format("not read: {}", error.what()));
  }
  return nullptr;
}

}  // namespace assay
