// ShellWord: text as one word of a POSIX shell.
//
// Thread rule: pure, any thread.
#ifndef ASSAY_COMMON_TEXT_SHELL_WORD_H_
#define ASSAY_COMMON_TEXT_SHELL_WORD_H_

#include <string>
#include <string_view>

namespace assay {

// As it is where every byte is harmless wherever the word stands, else in single quotes.
std::string ShellWord(std::string_view text);

}  // namespace assay

#endif  // ASSAY_COMMON_TEXT_SHELL_WORD_H_
