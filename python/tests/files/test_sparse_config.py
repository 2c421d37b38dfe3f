# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`quantization_config` is written as short as it can be, and read strictly."""

import json

import pytest

from nm_sparse import CheckpointError
from nm_sparse.files.sparse_config import SparseConfig, weight_encoding

HALF, EIGHT = weight_encoding("2:4"), weight_encoding("8:32, block = [1, 128]")
FIELDS = {"quant_method": "nm_sparse", "version": 1, "encoding": "2:4"}


def layers(**exceptions):
    """All linear layers of a model of twelve blocks."""
    found = {}
    for block in range(12):
        for name in ("self_attn.q_proj", "mlp.down_proj"):
            found[f"model.layers.{block}.{name}"] = HALF
    found["lm_head"] = None
    found.update({key.replace("__", "."): e for key, e in exceptions.items()})
    return found


def test_one_pattern_for_layers_that_are_alike():
    same = {f"model.layers.{b}.mlp.down_proj": EIGHT for b in range(12)}
    config = SparseConfig.of_layers({**layers(), **same}, weights="bf16")
    said = json.loads(json.dumps(config.to_dict()))
    # As many layers have one pattern as the other.
    assert said["encoding"] in ("2:4", "8:32, block = [1, 128]")
    assert len(said["layers"]) == 2 and said["layers"]["lm_head"] is None
    again = SparseConfig.parse(said)
    assert again == config
    for name, e in {**layers(), **same}.items():
        assert again.encoding_of(name) == e, name


@pytest.mark.parametrize("exceptions", [
    {}, {"model__layers__3__mlp__down_proj": EIGHT},
    {"model__layers__3__mlp__down_proj": None},
    {"model__layers__3__mlp__down_proj": EIGHT, "model__layers__4__self_attn__q_proj":
     None, "odd[0]*?": EIGHT, "odd0": HALF},
    {f"experts__{at}__w": EIGHT for at in range(3)},
    # Its pattern would be that of layers with another encoding, too.
    {"a__1__b": EIGHT, "a__2__b": EIGHT, "a__1__x__1__b": None},
])  # fmt: skip
def test_all_layers_are_as_they_were(exceptions):
    wanted = layers(**exceptions)
    config = SparseConfig.of_layers(wanted)
    again = SparseConfig.parse(json.loads(json.dumps(config.to_dict())))
    assert {name: again.encoding_of(name) for name in wanted} == wanted


@pytest.mark.parametrize("is_turned", [False, True])
def test_the_closest_pattern_decides(is_turned):
    """Whatever the order: transformers sorts what it writes."""
    layers = {"a.b": None, "a.*": "8:32, block = [1, 128]", "*": "1:4", "*.down": "3:4",
              "c.[0-9].*": None}  # fmt: skip
    items = list(layers.items())
    fields = {**FIELDS, "layers": dict(items[::-1] if is_turned else items)}
    config = SparseConfig.parse(fields)
    found = {name: config.encoding_of(name) for name in
             ("a.b", "a.c", "b", "x.down", "a.down", "c.5.down", "c.5.up")}  # fmt: skip
    assert found == {
        "a.b": None, "a.c": EIGHT, "b": weight_encoding("1:4"), "c.5.up": None,
        "x.down": weight_encoding("3:4"), "a.down": weight_encoding("3:4"),
        "c.5.down": weight_encoding("3:4"),
    }  # fmt: skip


def test_types_of_activations():
    wanted = {f"layers.{at}.up": "e4m3" for at in range(3)}
    names = {**wanted, "layers.0.q": "e4m3", "layers.1.q": None}
    layers = dict.fromkeys(names, HALF)
    more = {"weights": "e4m3", "scales": "output"}
    for given, said in ((wanted, "e4m3"), (names, {"layers.1.q": None, "*": "e4m3"}),
                        (dict.fromkeys(names), None), ({}, None)):  # fmt: skip
        config = SparseConfig.of_layers(layers, given, **more)
        again = SparseConfig.parse(json.loads(json.dumps(config.to_dict())))
        assert again.to_dict()["activations"] == said
        assert {name: again.activations_of(name) for name in given} == given


@pytest.mark.parametrize("change, message", [
    ({"quant_method": "gptq"}, "quant_method is 'gptq': legal is 'nm_sparse'"),
    ({"version": 2}, "version is 2: this nm_sparse reads up to 1; install a newer"),
    ({"version": None}, "version is None: legal is 1"),
    ({"version": True}, "version is True: legal is 1"),
    ({"encoding": "free"}, "encoding: encoding is free: legal are n:m levels"),
    ({"encoding": "2;4"}, "encoding: encoding '2;4' has ';'"),
    ({"encoding": 5}, "encoding is 5: legal is the text of an encoding"),
    ({"layers": ["a"]}, r"layers is \['a'\]: legal is an object of encodings"),
    ({"layers": {"a": "9:4"}}, r"layers\['a'\]: n:m is 9:4: legal is 1 <= n <= m"),
    ({"weights": "int4"}, "weights is 'int4': legal is 'f16', 'bf16', 'f32', 'f64', "),
    ({"weights": "e4m3"}, "scales is null: legal is 'output' for weights of e4m3"),
    ({"scales": "block"}, "scales is 'block': legal is 'output', null"),
    ({"activations": "e5m2"}, "activations is 'e5m2': legal is 'e4m3', 'int8', null"),
    ({"activations": {"a": 1}}, r"activations\['a'\] is 1: legal is 'e4m3', 'int8', n"),
    ({"provenance": {"a": 1}}, "provenance is {'a': 1}: legal is an object of texts"),
    ({"group_size": 128}, "group_size is there: legal is one of quant_method, version"),
])  # fmt: skip
def test_other_fields_are_refused(change, message):
    with pytest.raises(CheckpointError, match=f"^quantization_config: {message}"):
        SparseConfig.parse({**FIELDS, **change})
