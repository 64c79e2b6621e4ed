// agents --watch: the fleet as it changes, until Ctrl-C.
//
// Thread rule: the command's thread.
#ifndef ASSAY_CLI_AGENTS_WATCH_H_
#define ASSAY_CLI_AGENTS_WATCH_H_

#include "cli/commands.h"

namespace assay::cli {

// `session` is open. On a terminal a table that is redrawn in place, elsewhere a line a change,
// with --format json an object a changed node. 0 after a Ctrl-C and once nobody reads; the error's
// code where the coordinator stays away.
int WatchAgents(CommandContext& context, Session& session, Signals& signals, bool terminal);

}  // namespace assay::cli

#endif  // ASSAY_CLI_AGENTS_WATCH_H_
