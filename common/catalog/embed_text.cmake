# cmake -DSOURCE=... -DOUTPUT=... -DSYMBOL=... -P embed_text.cmake
# Writes OUTPUT with `extern const std::string_view SYMBOL` in namespace assay holding SOURCE's text.
# In pieces, since a string literal has a portable limit of 64 KiB.
file(READ "${SOURCE}" text)
set(delimiter "ASSAY_TEXT")
if(text MATCHES "\\)${delimiter}\"")
  message(FATAL_ERROR "${SOURCE} holds the delimiter of its own embedding")
endif()
string(LENGTH "${text}" length)
set(pieces "")
set(at 0)
while(at LESS length)
  string(SUBSTRING "${text}" ${at} 8000 piece)
  string(APPEND pieces "  R\"${delimiter}(${piece})${delimiter}\"\n")
  math(EXPR at "${at} + 8000")
endwhile()
file(WRITE "${OUTPUT}" "#include \"common/catalog/builtin_text.h\"

namespace assay {

const std::string_view ${SYMBOL} =
${pieces};

}  // namespace assay
")
