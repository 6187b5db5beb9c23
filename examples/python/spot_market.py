"""A notebook as a script: which rule survives a spot market? Cells begin with # %%, and the last one makes a plot."""

# %% The market: devices over ten hours
import sys
from pathlib import Path

import rubato

market = rubato.Trace.generate("spot:most=32,wait=0.2,life=1,hours=10,seed=4", end="hold")
print(market, market.summary)

# %% The time and cost of training there, for two durations of a restart
table = rubato.simulate(market, cluster=["substep=2,restart=0", "substep=2,restart=300"], price=0.9,
                        dataset_size=60000, epochs=10)
for row in range(table.rows):
    print(f"{table['cluster'][row]}: {table['hours'][row]:.2f} hours, {table['money'][row]:.2f} of money")

# %% Train with each rule
results = {rule: rubato.train("mlp", trace=market, rule=rule, lr=0.05, epochs=6, availability="weak:max-batch=1024")
           for rule in ("constant", "linear", "root", "adascale")}
for rule, result in results.items():
    print(f"{rule:9} test accuracy {100 * result.test_accuracy:.2f} % after {result.steps.rows} steps")

# %% The plot
try:
    import matplotlib
except ImportError:
    print("no plot: there is no matplotlib (Debian: python3-matplotlib)")
    sys.exit()

matplotlib.use("Agg")
from matplotlib import pyplot

figure, (above, below) = pyplot.subplots(2, figsize=(8, 7), layout="constrained")
market.plot(above)
for rule, result in results.items():
    below.plot(result.steps["iterations"], result.steps["loss"], label=rule, linewidth=0.8)
below.set(xlabel="scale-invariant iterations", ylabel="training loss", yscale="log")
below.legend()
file = Path(sys.argv[1] if len(sys.argv) > 1 else "spot_market.png")
figure.savefig(file)
print("the plot is", file)
