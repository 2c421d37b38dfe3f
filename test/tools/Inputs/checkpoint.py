"""Writes small checkpoints into a folder, or prints the header of a safetensors file.

Usage: checkpoint.py write FOLDER
       checkpoint.py header FILE
"""

import json
import pathlib
import struct
import sys


def save(path, tensors):
    """{name: (dtype, shape, bytes)} as safetensors."""
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, (dtype, shape, content) in tensors.items():
        offsets = [len(data), len(data) + len(content)]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
        data += content
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def halves(outputs, inputs, keep):
    """An f16 matrix of 1 where `keep(output, input)`, else 0."""
    places = ((o, i) for o in range(outputs) for i in range(inputs))
    rows = [1.0 if keep(*place) else 0.0 for place in places]
    return "F16", [outputs, inputs], struct.pack(f"<{len(rows)}e", *rows)


def two_four(output, i):
    return (i + output) % 4 < 2


def bitmasks(prefix, outputs, inputs):
    """The parts of a weight that keeps the inputs 1 and 3 of every four."""
    kept = outputs * inputs // 2
    return {
        f"{prefix}.shape": ("I64", [2, 1], struct.pack("<2q", outputs, inputs)),
        f"{prefix}.compressed": (
            "F16", [outputs, inputs // 2], struct.pack("<e", 1.0) * kept
        ),
        f"{prefix}.bitmask": (
            "U8", [outputs, inputs // 8], b"\xaa" * (outputs * inputs // 8)
        ),
    }  # fmt: skip


def doubles(size, element):
    """An f64 matrix, size x size."""
    elements = [element(i, j) for i in range(size) for j in range(size)]
    return "F64", [size, size], struct.pack(f"<{len(elements)}d", *elements)


def write_grams(path):
    """What `--gram` takes of a layer of 64 inputs, and what it does not."""
    tensors = {
        "alternating": doubles(64, lambda i, j: float(i % 2 == j % 2)),
        "small": doubles(2, lambda i, j: float(i == j)),
        "skew": doubles(64, lambda i, j: (i == j) + 0.5 * ((i, j) == (0, 1))),
        "infinite": doubles(64, lambda i, j: float("inf") if i == j == 3 else 1.0),
        "indefinite": doubles(64, lambda i, j: 1.0 if i == j else -0.5),
    }
    save(path, tensors)


def write(folder):
    folder.mkdir(parents=True, exist_ok=True)
    parts = bitmasks("layers.10.up", 32, 64)
    tensors = {
        "layers.9.up.weight": halves(32, 64, two_four),
        "layers.9.near.weight": halves(
            32, 64, lambda o, i: two_four(o, i) or (o, i) == (5, 30)
        ),
        "layers.9.scaled.weight": ("F8_E4M3", [32, 64], b"\x38\0\0\x38" * 512),
        "layers.9.scaled.weight_scale": ("F32", [32, 1], bytes(128)),
        **parts,
        "head.weight": halves(16, 64, lambda o, i: True),
        "norm.weight": ("F16", [64], bytes(128)),
    }
    save(folder / "one.safetensors", tensors)
    write_grams(folder / "gram.safetensors")

    sharded = folder / "sharded"
    sharded.mkdir(exist_ok=True)
    mask = {"layers.10.up.bitmask": parts.pop("layers.10.up.bitmask")}
    save(sharded / "model-1.safetensors", parts)
    save(sharded / "model-2.safetensors", mask)
    places = {name: "model-1.safetensors" for name in parts}
    places.update({name: "model-2.safetensors" for name in mask})
    index = sharded / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": places}))
    sparsity = {"format": "sparse-24-bitmask", "sparsity_structure": "2:4"}
    config = {"quantization_config": {"sparsity_config": sparsity}}
    (sharded / "config.json").write_text(json.dumps(config))

    pickled = folder / "pickled"
    pickled.mkdir(exist_ok=True)
    (pickled / "pytorch_model.bin").write_bytes(b"\x80\x04")

    outside = folder / "outside"
    outside.mkdir(exist_ok=True)
    places = {"head.weight": "../one.safetensors"}
    index = outside / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": places}))


def read(path):
    """The header of a file, and the bytes behind it."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def print_header(path):
    header, _ = read(path)
    for name, entry in header.pop("__metadata__").items():
        print(name, entry)
    for name, entry in header.items():
        print(name, entry["dtype"], entry["shape"])


def print_values(path, is_transposed=False):
    """The 16-bit elements of each matrix of values, a line for each row, or column."""
    header, data = read(path)
    for name, entry in header.items():
        if not name.endswith(".values"):
            continue
        begin, end = entry["data_offsets"]
        rows, columns = entry["shape"]
        words = struct.unpack(f"<{rows * columns}H", data[begin:end])
        print(name)
        for i in range(columns if is_transposed else rows):
            print(
                *words[i::columns] if is_transposed else words[i * columns :][:columns]
            )


def print_transposed(path):
    print_values(path, is_transposed=True)


COMMANDS = {
    "write": write,
    "header": print_header,
    "values": print_values,
    "transposed": print_transposed,
}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](pathlib.Path(sys.argv[2]))
