#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collects English text of installed packages as tokens for quality_language.py.

usage: collect_text.py --out FILE.npz [--root DIR ...] [--vocabulary 16384]
                       [--file-megabytes 20] [--text-megabytes 120]
                       [--known FILE.npz] [--skip REGEX] [--processes N] [--show N]

Paragraphs count once, whatever numbers and capitals they have: licenses and notices
recur in thousands of files. A document is held out by the hash of its path. The tokens
are those of a byte-level BPE that is trained on the text, or bytes with --vocabulary 0.
Where the file would be larger than --file-megabytes, training documents are left out.

--skip leaves out paths; by default manual pages of a cloud's command line, which are
thousands of fillings of a few templates.

--known collects on another machine what a file of this one lacks: it takes the tokens
of that file, leaves out the paragraphs that it holds out, and holds nothing out itself.

The file has, in LZMA, which numpy.load reads:
    train, held     uint16 [tokens], documents with token 0 after each
    token_bytes     uint8 [vocabulary], the bytes of each token
    paragraphs      uint32, hashes of the paragraphs that are held out
    tokenizer       uint8, JSON of the tokenizer; empty for bytes
"""

from __future__ import annotations

import argparse
import hashlib
import io
import lzma
import multiprocessing
import os
import pathlib
import re
import sys
import sysconfig
import time
import zipfile
from typing import Any, Dict, Iterator, List, Sequence, Set, Tuple

import numpy as np
from text_sources import paragraphs_of, reader_of

END = 0  # the token after each document
HELD_PER_MILLE = 15
TRAINED_BYTES = 24 << 20  # of text that the tokenizer learns from
ROOTS = (
    "/usr/share/doc",
    "/usr/share/man",
    "/usr/share/info",
    "/usr/share/perl",
    "/usr/include",
    "/usr/lib/llvm-22",
    "/usr/local/cuda",
    sysconfig.get_paths()["stdlib"],
    sysconfig.get_paths()["purelib"],
    "/usr/lib/python3",
)
LEAST_DOCUMENT = 300  # bytes

Document = Tuple[str, str]  # path, text


def hash_of(text: str) -> int:
    """32 bits."""
    digest = hashlib.blake2b(text.encode("utf-8"), digest_size=4).digest()
    return int.from_bytes(digest, "little")


def key_of(paragraph: str) -> int:
    """The hash of what is the same in all versions of a paragraph: its letters."""
    return hash_of("".join(filter(str.isalpha, paragraph)).lower())


def files_of(roots: Sequence[str], skip: str) -> List[pathlib.Path]:
    """Files that may have prose, each once, in an order by the hashes of their paths,
    so that a part of them is of all kinds.

    skip:  a regular expression of paths to leave out; "" for none.
    """
    skipped = re.compile(skip) if skip else None
    found: Dict[str, pathlib.Path] = {}
    for root in roots:
        for folder, _, names in os.walk(root):
            for name in names:
                path = pathlib.Path(folder, name)
                if skipped and skipped.search(str(path)):
                    continue
                if reader_of(path) and not path.is_symlink():
                    found[os.path.realpath(path)] = path
    return sorted(found.values(), key=lambda path: (hash_of(str(path)), path))


def read(files: Sequence[pathlib.Path], processes: int) -> Iterator[List[str]]:
    """The paragraphs of each file, in their order."""
    if processes == 1:
        yield from map(paragraphs_of, files)
        return
    with multiprocessing.Pool(processes) as pool:
        yield from pool.imap(paragraphs_of, files, chunksize=32)


def documents(
    files: Sequence[pathlib.Path], seen: Set[int], most_bytes: int, processes: int
) -> Iterator[Document]:
    """The documents of files without paragraphs that were seen, which it adds to."""
    total = 0
    for path, paragraphs in zip(files, read(files, processes)):
        own = []
        for paragraph in paragraphs:
            key = key_of(paragraph)
            if key not in seen:
                seen.add(key)
                own.append(paragraph)
        text = "\n\n".join(own)
        size = len(text.encode("utf-8"))
        if size < LEAST_DOCUMENT:
            continue
        total += size
        yield str(path), text
        if total > most_bytes:
            return


def is_held(path: str) -> bool:
    return hash_of("held " + path) % 1000 < HELD_PER_MILLE


class Bytes:
    """Token 0 ends a document, token 1 + b is byte b."""

    size = 257
    json = ""

    def encode(self, texts: Sequence[str]) -> List[np.ndarray]:
        raw = (np.frombuffer(text.encode("utf-8"), np.uint8) for text in texts)
        return [part.astype(np.uint16) + 1 for part in raw]

    def token_bytes(self) -> np.ndarray:
        return np.array([0] + [1] * 256, np.uint8)


class Pairs:
    """Byte-level BPE of the package tokenizers."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.size = tokenizer.get_vocab_size()
        self.json = tokenizer.to_str()

    @staticmethod
    def trained(texts: Sequence[str], size: int) -> Pairs:
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=size,
            special_tokens=["<end>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        part, total = [], 0
        for text in texts:
            part.append(text)
            total += len(text)
            if total > TRAINED_BYTES:
                break
        tokenizer.train_from_iterator(part, trainer)
        return Pairs(tokenizer)

    @staticmethod
    def parse(text: str) -> Pairs:
        from tokenizers import Tokenizer

        return Pairs(Tokenizer.from_str(text))

    def encode(self, texts: Sequence[str]) -> List[np.ndarray]:
        found = []
        for at in range(0, len(texts), 256):
            for one in self.tokenizer.encode_batch(list(texts[at : at + 256])):
                found.append(np.array(one.ids, np.uint16))
        return found

    def token_bytes(self) -> np.ndarray:
        # Each character of a byte-level token stands for a byte.
        names = (self.tokenizer.id_to_token(i) for i in range(self.size))
        found = [min(len(name), 255) for name in names]
        found[END] = 0
        return np.array(found, np.uint8)


def tokenizer_of(text: str) -> Any:
    """The tokenizer of a file of tokens, from its JSON."""
    return Pairs.parse(text) if text else Bytes()


def joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    """uint16 [tokens], `END` after each part."""
    end = np.array([END], np.uint16)
    return np.concatenate([piece for part in parts for piece in (part, end)] or [end])


def save(path: pathlib.Path, arrays: Dict[str, np.ndarray]) -> int:
    """Writes arrays in LZMA, of half the size that DEFLATE makes; returns the bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as file:
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.ascontiguousarray(array))
            file.writestr(f"{name}.npy", buffer.getvalue())
    return path.stat().st_size


def within(parts: List[np.ndarray], most_bytes: float) -> List[np.ndarray]:
    """As many of the first parts as LZMA makes so many bytes of."""
    everything = joined(parts)
    rate = len(lzma.compress(everything.tobytes(), preset=6)) / len(everything)
    ends = np.cumsum([len(part) + 1 for part in parts])
    return parts[: int((ends * rate <= most_bytes).sum())]


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--root", nargs="+", default=list(ROOTS))
    parser.add_argument("--vocabulary", type=int, default=16384)
    parser.add_argument("--file-megabytes", type=float, default=20)
    parser.add_argument("--text-megabytes", type=float, default=120)
    parser.add_argument("--known", type=pathlib.Path)
    parser.add_argument("--skip", default=r"/gcloud[_.]|/google-cloud-sdk/")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--show", type=int, default=0, help="print so many documents")
    options = parser.parse_args(arguments)
    if options.vocabulary and not 300 <= options.vocabulary <= 1 << 16:
        parser.error(
            f"--vocabulary is {options.vocabulary}: legal is 0, for bytes, or a number "
            "from 300 to 65536"
        )
    missing = [root for root in options.root if not os.path.isdir(root)]
    if len(missing) == len(options.root):
        parser.error(f"--root has no folder: {', '.join(missing)} do not exist")
    return options


def main(arguments: Sequence[str]) -> None:
    options, begun = parse(arguments), time.monotonic()
    seen: Set[int] = set()
    known = None
    if options.known:
        known = dict(np.load(options.known))
        seen.update(known["paragraphs"].tolist())
    before = len(seen)
    files = files_of(options.root, options.skip)
    print(f"{len(files)} files, {time.monotonic() - begun:.0f} s", flush=True)
    most = int(options.text_megabytes * 1e6)
    found = list(documents(files, seen, most, options.processes))
    texts: Dict[bool, List[str]] = {False: [], True: []}
    for path, text in found:
        texts[known is None and is_held(path)].append(text)
    sizes = {held: sum(len(t.encode()) for t in own) for held, own in texts.items()}
    print(
        f"{len(found)} documents of {len(seen) - before} paragraphs: "
        f"{sizes[False] / 1e6:.1f} MB to train on, {sizes[True] / 1e6:.2f} MB held "
        f"out, {time.monotonic() - begun:.0f} s",
        flush=True,
    )
    for path, text in found[: options.show]:
        print(f"--- {path}\n{text[:1200]}\n")
    tokens: Any = Bytes()
    if known is not None:
        tokens = tokenizer_of(known["tokenizer"].tobytes().decode())
    elif options.vocabulary:
        tokens = Pairs.trained(texts[False], options.vocabulary)
    held = joined(tokens.encode(texts[True]))
    hashes = {key_of(p) for text in texts[True] for p in text.split("\n\n")}
    fixed = 4 * len(hashes) + len(held) + 0.3 * len(tokens.json)
    encoded = tokens.encode(texts[False])
    parts = within(encoded, 0.98 * options.file_megabytes * 1e6 - fixed)
    train, widths = joined(parts), tokens.token_bytes()
    arrays = {
        "train": train,
        "held": held,
        "token_bytes": widths,
        "paragraphs": np.array(sorted(hashes), np.uint32),
        "tokenizer": np.frombuffer(tokens.json.encode(), np.uint8),
    }
    size = save(options.out, arrays)
    trained_bytes = int(widths[train].sum(dtype=np.int64))
    print(
        f"{options.out}: {size / 1e6:.2f} MB; {len(train)} tokens of "
        f"{trained_bytes / 1e6:.1f} MB to train on ({len(parts)} of {len(encoded)} "
        f"documents), {len(held)} held out; {tokens.size} in the vocabulary; "
        f"{time.monotonic() - begun:.0f} s"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
