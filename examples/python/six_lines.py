"""A trained model in six lines."""

import rubato

result = rubato.train("mnist-cnn", "digits", rule="adascale", cores=8, epochs=3)
print(f"test accuracy {100 * result.test_accuracy:.2f} %")
print(result.steps.rows, "steps of", sorted(set(result.steps["batch"].tolist())), "samples")
print("SHA-256 of the weights", result.sha256)
