#pragma once

// All of rubato, with what needs libtorch. Single headers compile faster.

#include <rubato/hosts/c10d_hosts.hpp>
#include <rubato/hosts/elastic_run.hpp>
#include <rubato/libtorch/adascale.hpp>
#include <rubato/libtorch/dataset.hpp>
#include <rubato/libtorch/model.hpp>
#include <rubato/libtorch/module.hpp>
#include <rubato/libtorch/trainer.hpp>
#include <rubato/libtorch/workload.hpp>
#include <rubato/rubato.hpp>
