#include "gpu_check/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

namespace cutout::gpu_check {

namespace {

template <typename... Values>
std::string format(const char* pattern, Values... values) {
  char text[512];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      result += format("\\u%04x", static_cast<unsigned>(c));
    } else {
      result += c;
    }
  }
  return result + '"';
}

/// JSON has no infinity.
std::string number(double value) { return std::isfinite(value) ? format("%.9g", value) : "null"; }

template <typename List, typename Text>
std::string array(const List& list, Text text) {
  std::string result;
  for (const auto& element : list) result += (result.empty() ? "\n  " : ",\n  ") + text(element);
  return "[" + result + "]";
}

}  // namespace

bool Report::ok() const { return std::ranges::all_of(findings, &Finding::ok); }

void Report::say(std::string part, bool ok, std::string said) {
  findings.push_back({std::move(part), ok, std::move(said)});
}

std::string table(const Report& report) {
  std::string text = "Device: " + report.device + "\n\n";
  for (const Finding& finding : report.findings)
    text += format("%-6s %-10s ", finding.ok ? "ok" : "WRONG", finding.part.c_str()) +
            finding.said + "\n";
  if (!report.kernels.empty()) {
    text += format("\n%-20s %8s %14s %14s\n", "KERNEL", "CASES", "DIFFERENCE", "LIMIT");
    for (const KernelResult& kernel : report.kernels) {
      text += format("%-20s %8d %14.3g %14.3g\n", kernel.name.c_str(), kernel.cases, kernel.largest,
                     kernel.limit);
    }
  }
  if (!report.batches.empty()) {
    text += format("\n%-6s %10s %10s %12s %14s %14s\n", "BATCH", "MS", "IMAGES/S", "NOT FINITE",
                   "MEAN DIFF.", "99.9 % DIFF.");
    for (const BatchResult& batch : report.batches) {
      text += format("%-6zu %10.3f %10.1f %12zu %14.3g %14.3g\n", batch.size, batch.ms,
                     batch.images_per_second, batch.not_finite, batch.mean_difference,
                     batch.p999_difference);
    }
  }
  if (report.load) {
    const LoadResult& load = *report.load;
    text += format(
        "\nAt %.0f %% load (%.1f images/s offered, %.1f done): p50 %.1f ms, p99 %.1f ms, %.2f "
        "times.\n",
        100 * load.share, load.offered_per_second, load.done_per_second, load.p50_ms, load.p99_ms,
        load.p99_ms / load.p50_ms);
  }
  if (report.device_memory > 0) {
    text += format("Device memory of the network in all sizes: %.0f MB.\n",
                   static_cast<double>(report.device_memory) / 1e6);
  }
  if (report.engine) {
    text +=
        format("\nEngine: opened in %.0f ms, first matte after %.0f ms, %.0f MB on the device.\n",
               report.engine->load_ms, report.engine->first_ms,
               static_cast<double>(report.engine->device_memory) / 1e6);
    text += format("%-12s %10s %10s %9s %9s %8s %9s %8s %8s %11s %11s\n", "MATTES", "AT A TIME",
                   "IMAGES/S", "P50 MS", "P99 MS", "QUEUE", "PREPARE", "INFER", "MATTE",
                   "MEAN DIFF.", "99.9 %");
    for (const EngineRound& round : report.engine->rounds) {
      text += format("%5d x %-5d%10d %10.1f %9.2f %9.2f %8.2f %9.2f %8.2f %8.2f %11.3g %11.3g\n",
                     round.width, round.height, round.at_a_time, round.images_per_second,
                     round.p50_ms, round.p99_ms, round.queue_ms, round.prepare_ms, round.infer_ms,
                     round.matte_ms, round.mean_difference, round.p999_difference);
    }
  }
  return text + (report.ok() ? "\nEverything is as it should be.\n" : "\nSomething is WRONG.\n");
}

std::string json(const Report& report) {
  std::string text = "{\n\"ok\": " + std::string(report.ok() ? "true" : "false");
  text += ",\n\"device\": " + quoted(report.device);
  text += ",\n\"findings\": " + array(report.findings, [](const Finding& finding) {
            return "{\"part\": " + quoted(finding.part) +
                   ", \"ok\": " + (finding.ok ? "true" : "false") +
                   ", \"said\": " + quoted(finding.said) + "}";
          });
  text += ",\n\"kernels\": " + array(report.kernels, [](const KernelResult& kernel) {
            return "{\"name\": " + quoted(kernel.name) +
                   ", \"cases\": " + std::to_string(kernel.cases) +
                   ", \"largest\": " + number(kernel.largest) +
                   ", \"limit\": " + number(kernel.limit) + "}";
          });
  text += ",\n\"latencies\": " + array(report.batches, [](const BatchResult& batch) {
            return "{\"batch\": " + std::to_string(batch.size) + ", \"ms\": " + number(batch.ms) +
                   ", \"imagesPerSecond\": " + number(batch.images_per_second) +
                   ", \"values\": " + std::to_string(batch.values) +
                   ", \"notFinite\": " + std::to_string(batch.not_finite) +
                   ", \"meanDifference\": " + number(batch.mean_difference) +
                   ", \"p999Difference\": " + number(batch.p999_difference) + "}";
          });
  if (report.load) {
    const LoadResult& load = *report.load;
    text += ",\n\"load\": {\"share\": " + number(load.share) +
            ", \"offeredPerSecond\": " + number(load.offered_per_second) +
            ", \"donePerSecond\": " + number(load.done_per_second) +
            ", \"p50Ms\": " + number(load.p50_ms) + ", \"p99Ms\": " + number(load.p99_ms) + "}";
  }
  if (report.engine) {
    const EngineResult& engine = *report.engine;
    text += ",\n\"engine\": {\"loadMs\": " + number(engine.load_ms) +
            ", \"firstMs\": " + number(engine.first_ms) +
            ", \"deviceMemoryBytes\": " + std::to_string(engine.device_memory) + ", \"rounds\": " +
            array(engine.rounds,
                  [](const EngineRound& round) {
                    return "{\"width\": " + std::to_string(round.width) +
                           ", \"height\": " + std::to_string(round.height) +
                           ", \"atATime\": " + std::to_string(round.at_a_time) +
                           ", \"images\": " + std::to_string(round.images) +
                           ", \"imagesPerSecond\": " + number(round.images_per_second) +
                           ", \"p50Ms\": " + number(round.p50_ms) +
                           ", \"p99Ms\": " + number(round.p99_ms) +
                           ", \"queueMs\": " + number(round.queue_ms) +
                           ", \"prepareMs\": " + number(round.prepare_ms) +
                           ", \"inferMs\": " + number(round.infer_ms) +
                           ", \"matteMs\": " + number(round.matte_ms) +
                           ", \"meanDifference\": " + number(round.mean_difference) +
                           ", \"p999Difference\": " + number(round.p999_difference) + "}";
                  }) +
            "}";
  }
  text += ",\n\"deviceMemoryBytes\": " + std::to_string(report.device_memory);
  text += ",\n\"loadMs\": " + number(report.load_ms);
  return text + ",\n\"warmUpMs\": " + number(report.warm_up_ms) + "\n}\n";
}

}  // namespace cutout::gpu_check
