#include "checked_value.h"

#include <algorithm>
#include <cmath>

namespace cutout::binding {

namespace {

std::string shown(const Napi::Value& value) {
  if (value.IsString()) return std::string("'") + value.As<Napi::String>().Utf8Value() + "'";
  if (value.IsObject()) return "an object";
  if (value.IsSymbol()) return "a symbol";
  return value.ToString().Utf8Value();
}

template <typename T>
Napi::TypedArrayOf<T> typed_array(const Napi::Object& from, const char* name,
                                  napi_typedarray_type type, const char* expected) {
  const Napi::Value value = from.Get(name);
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != type) {
    wrong_type(value, expected, name);
  }
  return value.As<Napi::TypedArrayOf<T>>();
}

}  // namespace

[[noreturn]] void wrong_type(const Napi::Value& value, const std::string& expected,
                             const std::string& name) {
  throw Napi::TypeError::New(
      value.Env(), "Expected " + expected + " for " + name + " but received " + shown(value) + ".");
}

[[noreturn]] void wrong_value(const Napi::Value& value, const std::string& expected,
                              const std::string& name) {
  throw Napi::RangeError::New(
      value.Env(), "Expected " + expected + " for " + name + " but received " + shown(value) + ".");
}

Napi::Object object(const Napi::Value& value, const char* name) {
  if (!value.IsObject()) wrong_type(value, "an object", name);
  return value.As<Napi::Object>();
}

double number(const Napi::Value& value, const char* name) {
  if (!value.IsNumber()) wrong_type(value, "a number", name);
  return value.As<Napi::Number>().DoubleValue();
}

std::int64_t integer(const Napi::Value& value, const char* name, double low, double high) {
  const double given = number(value, name);
  if (!(given >= low && given <= high) || given != std::floor(given)) {
    wrong_value(value,
                "an integer from " + std::to_string(static_cast<std::int64_t>(low)) + " to " +
                    std::to_string(static_cast<std::int64_t>(high)),
                name);
  }
  return static_cast<std::int64_t>(given);
}

int integer(const Napi::Object& from, const char* name, int low, int high) {
  return static_cast<int>(integer(from.Get(name), name, low, high));
}

float number_in(const Napi::Object& from, const char* name, double low, double high) {
  const Napi::Value value = from.Get(name);
  const double given = number(value, name);
  if (!(given >= low && given <= high)) {
    wrong_value(value,
                "a number from " + shown(Napi::Number::New(value.Env(), low)) + " to " +
                    shown(Napi::Number::New(value.Env(), high)),
                name);
  }
  return static_cast<float>(given);
}

bool boolean(const Napi::Object& from, const char* name) {
  const Napi::Value value = from.Get(name);
  if (!value.IsBoolean()) wrong_type(value, "a boolean", name);
  return value.As<Napi::Boolean>().Value();
}

std::string text(const Napi::Object& from, const char* name) {
  const Napi::Value value = from.Get(name);
  if (!value.IsString()) wrong_type(value, "a string", name);
  const std::string given = value.As<Napi::String>().Utf8Value();
  if (given.empty()) wrong_value(value, "a string that is not empty", name);
  return given;
}

std::vector<std::string> strings(const Napi::Object& from, const char* name) {
  const Napi::Value value = from.Get(name);
  if (!value.IsArray()) wrong_type(value, "an array of strings", name);
  const Napi::Array array = value.As<Napi::Array>();
  std::vector<std::string> result;
  for (std::uint32_t i = 0; i < array.Length(); ++i) {
    const Napi::Value element = array.Get(i);
    if (!element.IsString()) wrong_type(element, "a string", name);
    result.push_back(element.As<Napi::String>().Utf8Value());
  }
  return result;
}

std::vector<int> integers(const Napi::Object& from, const char* name, int low, int high) {
  const Napi::Value value = from.Get(name);
  if (!value.IsArray()) wrong_type(value, "an array of numbers", name);
  const Napi::Array array = value.As<Napi::Array>();
  std::vector<int> result;
  for (std::uint32_t i = 0; i < array.Length(); ++i) {
    const Napi::Value element = array.Get(i);
    const auto given = static_cast<int>(integer(element, name, low, high));
    if (std::ranges::find(result, given) != result.end()) {
      wrong_value(element, "distinct numbers", name);
    }
    result.push_back(given);
  }
  if (result.empty()) wrong_value(value, "at least one number", name);
  return result;
}

Napi::Array array(const Napi::Object& from, const char* name, std::uint32_t count,
                  const char* expected) {
  const Napi::Value value = from.Get(name);
  if (!value.IsArray() || value.As<Napi::Array>().Length() != count) {
    wrong_type(value, expected, name);
  }
  return value.As<Napi::Array>();
}

std::array<float, 3> triple(const Napi::Object& from, const char* name) {
  const Napi::Array given = array(from, name, 3, "an array of three numbers");
  std::array<float, 3> result{};
  for (std::uint32_t i = 0; i < 3; ++i) {
    result[i] = static_cast<float>(number(given.Get(i), name));
    if (!std::isfinite(result[i])) wrong_value(given.Get(i), "a finite number", name);
  }
  return result;
}

Napi::Uint8Array byte_array(const Napi::Object& from, const char* name) {
  return typed_array<std::uint8_t>(from, name, napi_uint8_array, "a Uint8Array");
}

std::vector<float> floats(const Napi::Object& from, const char* name) {
  return copied(typed_array<float>(from, name, napi_float32_array, "a Float32Array"));
}

std::vector<std::int8_t> bytes(const Napi::Object& from, const char* name) {
  return copied(typed_array<std::int8_t>(from, name, napi_int8_array, "an Int8Array"));
}

}  // namespace cutout::binding
