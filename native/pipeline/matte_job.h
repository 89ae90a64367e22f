#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <shared_mutex>

#include "core/cancel.h"
#include "core/image_view.h"
#include "core/network.h"
#include "core/thread_pool.h"
#include "pipeline/backend.h"
#include "pipeline/plan.h"
#include "pipeline/subject_detector.h"
#include "sched/batcher.h"

namespace cutout {

/// A network on one device.
struct LoadedNetwork {
  NetworkSpec spec;
  std::unique_ptr<Network> network;
  std::shared_mutex use;           // shared by the jobs that use the network
  std::optional<Batcher> batcher;  // of runs at the usual size; without, each runs alone
};

/// One matte to be made. Everything is borrowed.
struct MatteJob {
  ImageView pixels;  // straight RGBA8 without row padding
  const MattePlan& plan;
  LoadedNetwork& network;
  std::optional<std::reference_wrapper<LoadedNetwork>> second;  // answers the same image
  std::optional<std::reference_wrapper<const SubjectClassifier>>
      classifier;         // of the subject's type
  int detector_slot = 0;  // of the classifier; no other job uses it meanwhile
};

/// Where the stages of a job run.
struct StageContext {
  Backend& backend;
  ThreadPool& pool;  // of the job
  int slot;          // of the networks, open; no other job uses it meanwhile
  const CancelToken& token;
};

}  // namespace cutout
