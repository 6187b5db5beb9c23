#pragma once

#include <rubato/recipe/buffer_use.hpp>
#include <rubato/recipe/initializer_options.hpp>
#include <rubato/recipe/own_operators.hpp>
#include <rubato/recipe/precision.hpp>
#include <rubato/scaling/loss_scaler.hpp>
#include <rubato/torch/augment.hpp>

namespace rubato {

/// How a model of libtorch is computed; all of it is part of what a state is bound to.
struct TorchOptions {
  Precision precision = Precision::full;
  /// Of Precision::fp16.
  LossScaleOptions loss_scale{};
  /// Which operators of libtorch are computed by rubato, in training and evaluation.
  OwnOperators operators{};
  InitializerOptions initializer{};
  /// BufferUse::local needs TrainOptions::exact to be false.
  BufferUse buffers = BufferUse::combined;
  /// What the inputs of a minibatch go through before the model; empty is nothing.
  Augmentation augment{};
};

}  // namespace rubato
