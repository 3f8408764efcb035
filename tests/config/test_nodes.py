from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from towpath.config.nodes import ConnectNode, read_token
from towpath.errors import RuntimeFailure


def endpoint(address: str) -> ConnectNode:
    return ConnectNode.model_validate({"type": "connect", "address": address, "cores": 1})


def test_options_of_an_address_are_apart_from_it() -> None:
    node = endpoint("sc://host:1/;use_ssl=true;token=a%3Db=c/d;")
    assert (node.plain_address, node.options) == ("sc://host:1", {"use_ssl": "true", "token": "a=b=c/d"})
    assert endpoint("sc://host").options == {}


@pytest.mark.parametrize(
    "address", ["sc://host;token=secret", "sc://host/;token=secret;x", "sc://host/a/;token=secret"]
)
def test_a_bad_address_is_refused_without_the_token_in_it(address: str) -> None:
    with pytest.raises(ValidationError) as refused:
        endpoint(address)
    (mistake,) = refused.value.errors()
    assert "token=..." in mistake["msg"] and "secret" not in mistake["msg"]


def test_a_token_is_any_word_of_signs(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(" a=b;c/d%20+&\n")
    assert read_token(file) == "a=b;c/d%20+&"


@pytest.mark.parametrize("content", [b"", b"two words", b"secret\nsecret", "secrét".encode(), b"secret\xff"])
def test_a_file_that_holds_no_token_is_refused_without_showing_it(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    with pytest.raises(RuntimeFailure, match="expected a file with the token") as refused:
        read_token(file)
    assert "secr" not in str(refused.value) and "words" not in str(refused.value)


def test_a_missing_token_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(RuntimeFailure, match=r"nowhere: expected a file with the token: No such file"):
        read_token(tmp_path / "nowhere")
