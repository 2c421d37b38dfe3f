# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which files a checkpoint has: one, or the folder of a model with an index."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator

from .tensor_file import CheckpointError, parse_json

INDEX = "model.safetensors.index.json"
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
LARGEST_JSON = 1 << 28  # bytes of an index or a config


def find_first(path: Path) -> Path:
    """The file to read first: tensors, or an index of files of them."""
    if path.is_dir():
        for name in (INDEX, "model.safetensors"):
            if (path / name).exists():
                return path / name
        files = sorted(path.glob("*.safetensors"))
        if len(files) == 1:
            return files[0]
        pickles = sorted(p.name for p in path.iterdir() if p.suffix in PICKLES)
        if not files and pickles:
            _refuse_pickle(path / pickles[0])
        raise CheckpointError(
            f"{path}: has {len(files)} safetensors files and no {INDEX}: legal is one "
            "file, or an index"
        )
    if path.suffix in PICKLES:
        _refuse_pickle(path)
    if path.suffix == ".json" and not path.name.endswith(".index.json"):
        raise CheckpointError(f"{path}: legal is a folder, .safetensors or .index.json")
    return path


def _refuse_pickle(path: Path) -> None:
    raise CheckpointError(
        f"{path}: this is a pickle, and reading one runs the code in it: legal is "
        "safetensors; convert it where that code may run"
    )


def read_json(path: Path, what: str) -> Dict[str, Any]:
    if path.stat().st_size > LARGEST_JSON:
        raise CheckpointError(
            f"{path}: has {path.stat().st_size} bytes: legal is {LARGEST_JSON}"
        )
    return parse_json(path.read_bytes(), path, what)


def read_index(path: Path) -> Dict[str, str]:
    """The file that each tensor is in, by the name of the tensor."""
    shards = read_json(path, "the index").get("weight_map")
    if not isinstance(shards, dict) or not shards:
        raise CheckpointError(f"{path}: has no weight_map: legal is one")
    for name, shard in shards.items():
        # A name of one part stays in the folder. It may be a link, as in caches.
        if (
            not isinstance(shard, str)
            or not shard.endswith(".safetensors")
            or any(c in shard for c in "/\\\0")
        ):
            raise CheckpointError(
                f"{path}: tensor {name!r} is in {shard!r}: legal is the name of a "
                "safetensors file in the same folder"
            )
        if not (path.parent / shard).exists():
            raise CheckpointError(
                f"{path}: tensor {name!r} is in {shard}, which is not there"
            )
    return shards


def check_target(target: Path, source: Path, force: bool) -> None:
    """Raises CheckpointError where a folder cannot have this name: it is there and not
    empty, or, with `force`, is no checkpoint; or it holds the source."""
    source, path = source.resolve(), target.resolve()
    source = source if source.is_dir() else source.parent
    if path == source or path in source.parents:
        raise CheckpointError(f"{target}: holds the source: legal is another folder")
    if not path.exists() or _is_empty(path):
        return
    if not force:
        raise CheckpointError(
            f"{target}: is there: legal is a new or empty folder; force, or --force, "
            "replaces a checkpoint"
        )
    if not path.is_dir() or not _is_checkpoint(path):
        raise CheckpointError(
            f"{target}: is no checkpoint, and is not replaced: legal with force is a "
            "folder with config.json, safetensors and no folders"
        )


def _is_empty(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())


def _is_checkpoint(path: Path) -> bool:
    inside = list(path.iterdir())
    return (
        any(one.suffix == ".safetensors" for one in inside)
        and any(one.name == "config.json" for one in inside)
        and not any(one.is_dir() for one in inside)
    )


def put_folder(work: Path, target: Path) -> None:
    """Gives a folder the name `target`, in the place of what has it, as `check_target`
    allows."""
    old = None
    if target.exists() and not _is_empty(target):
        old = target.with_name(target.name + ".replaced")
        os.replace(target, old)
    elif target.exists():
        target.rmdir()
    os.replace(work, target)
    if old is not None:
        shutil.rmtree(old)


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A folder that gets the name `target` at the end, and vanishes on an error."""
    parent = target.resolve().parent
    folder = Path(tempfile.mkdtemp(dir=parent, prefix=target.name))
    try:
        yield folder
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(folder, 0o777 & ~umask)
        put_folder(folder, target.resolve())
    except BaseException:
        shutil.rmtree(folder)
        raise


def copy_others(
    source: Path, folder: Path, renamed: Dict[str, str], and_config: bool = False
) -> None:
    """Copies what lies beside the weights: tokenizers, texts, and config.json where it
    is asked for.

    renamed:  names that files get, by theirs."""
    source = source if source.is_dir() else source.parent
    for path in sorted(source.iterdir()):
        is_weights = path.suffix in (".safetensors", *PICKLES)
        is_weights |= path.name.endswith(".index.json")
        is_left = is_weights or (path.name == "config.json" and not and_config)
        if path.is_file() and not is_left:
            shutil.copyfile(path, folder / renamed.get(path.name, path.name))
