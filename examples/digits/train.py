#!/usr/bin/python3
"""Trains the digit classifier of this example and writes the three files that the demo needs.

    /usr/bin/python3 examples/digits/train.py [--out FOLDER] [--epochs N]

The data are scikit-learn's bundled digits: 1797 hand-written digits, 8x8 pixels with values 0 to 16. One fifth of each
class is held out before training and never looked at until the last line, which prints the accuracy on it.

Writes: digits.onnx              input "image" float32[1,1,8,8] in 0..1, output "scores" float32[1,10], summing to 1
        digits_test.npy          the held-out images, uint8[N,8,8], values 0 to 16
        digits_test_labels.npy   their labels, uint8[N]

Needs Debian's python3-torch and python3-sklearn, which only /usr/bin/python3 sees. Same machine, same bytes: everything
is seeded and runs on one thread; another CPU may differ in last bits.
"""
import argparse
import os
import random
import time

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

SEED = 7
MAX_PIXEL = 16.0


class DigitNet(nn.Module):
    """Three 3x3 convolutions with batch normalisation, two poolings, two dense layers, softmax: 41 000 weights."""

    def __init__(self):
        super().__init__()

        def block(inputs, outputs):
            return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU())

        self.features = nn.Sequential(block(1, 16), block(16, 32), nn.MaxPool2d(2), block(32, 64), nn.MaxPool2d(2))
        self.classify = nn.Sequential(nn.Flatten(), nn.Linear(64 * 2 * 2, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 10))

    def logits(self, image):
        return self.classify(self.features(image))

    def forward(self, image):
        return torch.softmax(self.logits(image), 1)


def shifted(images, generator):
    """Each picture moved by -1, 0 or 1 pixel both ways: digits are where they are by chance."""
    padded = nn.functional.pad(images, (1, 1, 1, 1))
    moves = torch.randint(0, 3, (len(images), 2), generator=generator)
    return torch.stack([p[:, y:y + 8, x:x + 8] for p, (y, x) in zip(padded, moves.tolist())])


def train(images, labels, epochs):
    generator = torch.Generator().manual_seed(SEED)
    model = DigitNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    batch = 64
    steps = epochs * ((len(images) + batch - 1) // batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=steps)
    model.train()
    for _ in range(epochs):
        for pick in torch.randperm(len(images), generator=generator).split(batch):
            loss = nn.functional.cross_entropy(model.logits(shifted(images[pick], generator)), labels[pick],
                                               label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return model.eval()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=os.path.dirname(os.path.abspath(__file__)))
    parser.add_argument("--epochs", type=int, default=40)
    args = parser.parse_args()

    random.seed(SEED)
    np.random.seed(SEED)
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)

    digits = load_digits()
    train_images, test_images, train_labels, test_labels = train_test_split(
        digits.images.astype(np.uint8), digits.target.astype(np.uint8),
        test_size=0.2, stratify=digits.target, random_state=SEED)

    def tensor(images):
        return torch.from_numpy(images.astype(np.float32) / MAX_PIXEL)[:, None]

    start = time.time()
    model = train(tensor(train_images), torch.from_numpy(train_labels.astype(np.int64)), args.epochs)
    print(f"trained on {len(train_images)} digits, {args.epochs} epochs, {time.time() - start:.0f} s")

    onnx_path = os.path.join(args.out, "digits.onnx")
    # PRESERVE keeps BatchNormalization as nodes of their own: folding them is the compiler's work, not the exporter's.
    torch.onnx.export(model, torch.zeros(1, 1, 8, 8), onnx_path, input_names=["image"], output_names=["scores"],
                      opset_version=13, do_constant_folding=False, training=torch.onnx.TrainingMode.PRESERVE)
    np.save(os.path.join(args.out, "digits_test.npy"), test_images)
    np.save(os.path.join(args.out, "digits_test_labels.npy"), test_labels)
    print(f"wrote {onnx_path}, {os.path.getsize(onnx_path)} bytes")

    with torch.no_grad():
        right = (model(tensor(test_images)).argmax(1).numpy() == test_labels).sum()
    print(f"held-out accuracy: {right} of {len(test_labels)} = {100.0 * right / len(test_labels):.2f} %")


if __name__ == "__main__":
    main()
