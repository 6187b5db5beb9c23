"""A learning-rate rule of your own and two built-in ones, with batches that grow to 32 times the reference batch.

The rule is linear up to a scale of 4 and a square root beyond, so it still converges where the linear rule diverges.
"""

import math

import rubato


def bounded(batch, statistics):
    scale = statistics["scale"]
    return scale if scale <= 4 else 4 * math.sqrt(scale / 4)


trace = rubato.Trace([(128, 4), (1024, 8), (4096, 16)], end="cycle")
for rule in ("constant", "linear", bounded):
    name = rule if isinstance(rule, str) else rule.__name__
    try:
        result = rubato.train("softmax", trace=trace, rule=rule, lr=0.05, epochs=4)
        print(f"{name:<9} {100 * result.test_accuracy:6.2f} %, rates up to {max(result.steps['lr']):.3g}")
    except rubato.Diverged as error:
        print(f"{name:<9} diverged: {error}")
