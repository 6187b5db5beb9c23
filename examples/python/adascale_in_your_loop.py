"""AdaScale around an optimizer of PyTorch, in a loop of your own."""

import rubato
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(10, 1)
truth = torch.randn(10, 1)
# The rate was tuned for batches of 16; a step has four of them.
optimizer = rubato.AdaScale(torch.optim.SGD(model.parameters(), lr=0.05), num_gradients_to_accumulate=4)
for step in range(101):
    optimizer.zero_grad()
    for _ in range(4):
        inputs = torch.randn(16, 10)
        targets = inputs @ truth + 0.1 * torch.randn(16, 1)
        loss = nn.functional.mse_loss(model(inputs), targets)
        (loss / 4).backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step:3}  gain {optimizer.gain():.2f} of {optimizer.scale:.0f}  loss {loss.item():.4f}")
