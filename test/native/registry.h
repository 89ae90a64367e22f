#pragma once

#include <napi.h>

#include <vector>

/// The test-only addon: every test/native/<kernel>.cc registers what its test needs with
///   CUTOUT_TEST_MODULE([](Napi::Env env, Napi::Object exports) { exports.Set("name", …); });
namespace cutout::test {

using Register = void (*)(Napi::Env, Napi::Object);

inline std::vector<Register>& registry() {
  static std::vector<Register> entries;
  return entries;
}

struct Registrar {
  explicit Registrar(Register entry) { registry().push_back(entry); }
};

}  // namespace cutout::test

#define CUTOUT_TEST_MODULE(function) \
  static const ::cutout::test::Registrar registrar_ { function }
