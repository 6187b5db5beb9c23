#pragma once

// All of rubato, with what needs libtorch. Single headers compile faster.

#include <rubato/c10d/c10d_hosts.hpp>
#include <rubato/c10d/elastic_hosts.hpp>
#include <rubato/model/builtin_models.hpp>
#include <rubato/model/model.hpp>
#include <rubato/model/module.hpp>
#include <rubato/model/script.hpp>
#include <rubato/rubato.hpp>
#include <rubato/torch/adascale.hpp>
#include <rubato/torch/arrays.hpp>
#include <rubato/torch/augment.hpp>
#include <rubato/torch/dataset.hpp>
#include <rubato/torch/environment.hpp>
#include <rubato/torch/losses.hpp>
#include <rubato/torch/torch_optimizer.hpp>
#include <rubato/torch/torch_options.hpp>
#include <rubato/torch/torch_trainer.hpp>
#include <rubato/torch/weights.hpp>
#include <rubato/torch_run/own_workload.hpp>
#include <rubato/torch_run/torch_workload.hpp>
