// A locale that writes 1.234,5, for as long as this lives: C++'s global one always, C's where one
// is installed.
#ifndef ASSAY_TESTS_UNIT_MATRIX_COMMA_LOCALE_H_
#define ASSAY_TESTS_UNIT_MATRIX_COMMA_LOCALE_H_

#include <clocale>
#include <locale>
#include <string>

namespace assay {

class CommaLocale {
 public:
  CommaLocale() : c_before_(std::setlocale(LC_ALL, nullptr)) {
    before_ = std::locale::global(std::locale(std::locale::classic(), new Punctuation));
    for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8"}) {
      if (std::setlocale(LC_ALL, name) != nullptr) break;
    }
  }
  ~CommaLocale() {
    std::locale::global(before_);
    std::setlocale(LC_ALL, c_before_.c_str());
  }
  CommaLocale(const CommaLocale&) = delete;
  CommaLocale& operator=(const CommaLocale&) = delete;

 private:
  class Punctuation : public std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  std::string c_before_;
  std::locale before_;
};

}  // namespace assay

#endif  // ASSAY_TESTS_UNIT_MATRIX_COMMA_LOCALE_H_
