#pragma once

#include <napi.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

/// Reads JavaScript values of one type. Each throws TypeError for a wrong type and RangeError for
/// a wrong value; `name` is how the message calls the value. JS thread only.
namespace cutout::binding {

/// Throws TypeError: "Expected <expected> for <name> but received <value>."
[[noreturn]] void wrong_type(const Napi::Value& value, const std::string& expected,
                             const std::string& name);

/// Throws RangeError, in the same words.
[[noreturn]] void wrong_value(const Napi::Value& value, const std::string& expected,
                              const std::string& name);

/// Whether a field is there.
inline bool has(const Napi::Object& from, const char* name) {
  return !from.Get(name).IsUndefined();
}

Napi::Object object(const Napi::Value& value, const char* name);

double number(const Napi::Value& value, const char* name);

std::int64_t integer(const Napi::Value& value, const char* name, double low, double high);

int integer(const Napi::Object& from, const char* name, int low, int high);

/// Returns a number from `low` to `high`.
float number_in(const Napi::Object& from, const char* name, double low, double high);

bool boolean(const Napi::Object& from, const char* name);

/// Not empty.
std::string text(const Napi::Object& from, const char* name);

std::vector<std::string> strings(const Napi::Object& from, const char* name);

/// Different numbers, at least one.
std::vector<int> integers(const Napi::Object& from, const char* name, int low, int high);

/// What `choices` has for the string.
template <typename T>
T choice(const Napi::Object& from, const char* name,
         std::initializer_list<std::pair<const char*, T>> choices) {
  const Napi::Value value = from.Get(name);
  std::string expected = "one of";
  for (const auto& [word, result] : choices) {
    if (value.IsString() && value.As<Napi::String>().Utf8Value() == word) return result;
    expected += std::string(" '") + word + "'";
  }
  if (!value.IsString()) wrong_type(value, expected, name);
  wrong_value(value, expected, name);
}

/// An array of `count` elements, which `expected` says in words.
Napi::Array array(const Napi::Object& from, const char* name, std::uint32_t count,
                  const char* expected);

/// Three finite numbers.
std::array<float, 3> triple(const Napi::Object& from, const char* name);

Napi::Uint8Array byte_array(const Napi::Object& from, const char* name);

template <typename T>
std::vector<T> copied(const Napi::TypedArrayOf<T>& array) {
  return {array.Data(), array.Data() + array.ElementLength()};
}

std::vector<float> floats(const Napi::Object& from, const char* name);

std::vector<std::int8_t> bytes(const Napi::Object& from, const char* name);

}  // namespace cutout::binding
