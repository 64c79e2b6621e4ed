// Printable: text of a peer, a file or a child made safe for a terminal.
//
// Escape sequences (CSI, OSC, ...), control characters of C0 and C1, DEL and the marks that turn
// the direction of writing go away; bytes that are not UTF-8 become U+FFFD. Pure.
#ifndef ASSAY_CLI_PRINTABLE_H_
#define ASSAY_CLI_PRINTABLE_H_

#include <string>
#include <string_view>

namespace assay::cli {

// One line: a tab or line break becomes a space.
std::string Printable(std::string_view text);

// Several lines: keeps line breaks (CR LF and CR count as one) and writes a tab as spaces.
std::string PrintableLines(std::string_view text);

}  // namespace assay::cli

#endif  // ASSAY_CLI_PRINTABLE_H_
