#include "common/log/log.h"

#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <memory>

namespace assay {

absl::Status InitLog(const std::string& program, const std::string& level) {
  const spdlog::level::level_enum parsed = spdlog::level::from_str(level);
  if (parsed == spdlog::level::off || parsed == spdlog::level::trace ||
      parsed == spdlog::level::critical) {
    return absl::InvalidArgumentError(
        fmt::format("log level '{}' is not known: use debug, info, warn or error", level));
  }
  auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  auto logger = std::make_shared<spdlog::logger>(program, std::move(sink));
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %^%l%$ %n: %v", spdlog::pattern_time_type::utc);
  logger->set_level(parsed);
  logger->flush_on(spdlog::level::debug);
  spdlog::set_default_logger(std::move(logger));
  return absl::OkStatus();
}

}  // namespace assay
