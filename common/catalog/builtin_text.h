// The catalogues' texts as they were when the program was built (embed_text.cmake).
#ifndef ASSAY_COMMON_CATALOG_BUILTIN_TEXT_H_
#define ASSAY_COMMON_CATALOG_BUILTIN_TEXT_H_

#include <string_view>

namespace assay {

extern const std::string_view kCardsYaml;
extern const std::string_view kWorkloadsYaml;

}  // namespace assay

#endif  // ASSAY_COMMON_CATALOG_BUILTIN_TEXT_H_
