# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How figures look, and how they begin."""

# Okabe and Ito's colours, told apart by colour-blind readers too.
BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
COLORS = {"f16": BLUE, "bf16": GREEN, "f32": ORANGE}
GREY = "#666666"


def start(columns=1, width=7.2, height=3.6):
    """matplotlib.pyplot, a figure of so many inches, and its axes side by side."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams.update(
        {
            "font.size": 9,
            "font.family": "sans-serif",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.edgecolor": GREY,
            "axes.grid": True,
            "grid.color": "#e6e6e6",
            "legend.frameon": False,
            "svg.hashsalt": "nm_sparse",
            "svg.fonttype": "path",
        }
    )
    figure, axes = plt.subplots(
        1, columns, figsize=(width, height), squeeze=False, layout="constrained"
    )
    return plt, figure, axes[0]
