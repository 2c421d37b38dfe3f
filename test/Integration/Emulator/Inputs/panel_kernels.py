# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels for the emulator whose loops have as many steps as a panel has rows, whose
results are written in another order, and which gather the patches of an image."""

from families import FEATURE, Case, Convolution, fields_of, mma, schedule, simt


def wgmma(tile, warps, stages, rows, **modes):
    return schedule(
        "wgmma", tile, warps, stages, rows=rows, producers=4, tma=True, **modes
    )


SCHEDULES = {
    "simt": ("f32", 32, simt((32, 32), (1, 1), rows=16)),
    "mma": ("f16", 32, mma((64, 32), (2, 1), 4, rows=16)),
    "mma-producers": (
        "bf16",
        32,
        mma((128, 32), (4, 1), 3, rows=32, producers=4, persistent=True),
    ),
    "wgmma": ("f16", 64, wgmma((64, 64), (1, 4), 3, 32)),
    "wgmma-persistent": ("f16", 64, wgmma((64, 64), (1, 4), 3, 32, persistent=True)),
}


def panels():
    """Ragged panels, the last of which has fewer outputs; with a bias of outputs
    that are in another order, too."""
    for name, (element, panel, how) in SCHEDULES.items():
        case = {"tokens": None, "k": 1096, "outputs": 72, "dim": 1, "schedule": how}
        for order in ("ragged", "shuffled"):
            yield (
                f"{order}-{name}",
                Case(
                    element,
                    panel=panel,
                    free=True,
                    shuffled=order == "shuffled",
                    **case,
                    **FEATURE,
                ),
            )


def convolutions():
    """Strides, and zeros around the image, that differ by axis and side."""
    for name, (element, panel, how) in SCHEDULES.items():
        yield (
            f"convolution-{name}",
            Convolution(
                element=element,
                encoding=f"4:16, block = [1, {panel}]",
                batch=8,
                channels=132,
                height=6,
                width=7,
                outputs=72,
                kernel=(3, 2),
                strides=(1, 2),
                low=(2, 0),
                high=(0, 1),
                epilogue="none" if element == "f32" else "residual",
                schedule=fields_of(how),
            ),
        )


def panel_kernels():
    yield from panels()
    yield from convolutions()
