"""The second half of docs/tutorial.md: the same shop over a topic, and a query that moves while orders come."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from towpath import start

from .broker import Broker
from .topics import create, produce

TUTORIAL = (Path(__file__).parents[2] / "docs/tutorial.md").read_text()
PATIENCE_S = 120


@pytest.mark.spark
@pytest.mark.long
def test_the_shop_over_kafka(broker: Broker, jars: Path, tmp_path: Path) -> None:
    (text,) = re.findall(r"`kafka-shop.yaml`:\n\n```yaml\n(.*?)```", TUTORIAL, re.DOTALL)
    connector = ", ".join(map(str, sorted((jars / "connector").glob("*.jar"))))
    text = text.replace("localhost:9092", broker.address).replace("cores: 1}", f"cores: 1, jars: [{connector}]}}")
    (tmp_path / "kafka-shop.yaml").write_text(text)
    create(broker.address, "orders")
    sent = 0

    def order() -> None:
        nonlocal sent
        sent += 1
        row = {"id": sent, "country": "DE", "amount": 501.0, "at": datetime.now(UTC).isoformat()}
        produce(broker.address, "orders", [(None, row)])

    with start(tmp_path / "kafka-shop.yaml") as shop:

        def until(done: object) -> None:
            end = time.monotonic() + PATIENCE_S
            while not done():  # type: ignore[operator]
                assert time.monotonic() < end
                order()
                shop.run(seconds=0.5)

        until(lambda: shop.results("large").num_rows > 0)
        (move,) = shop.move("large", "right")
        until(lambda: shop.engine.controller.state.moves[move].step == "done")
        last = sent
        until(lambda: last in shop.results("large").column("id").to_pylist())
        ids = shop.results("large").column("id").to_pylist()
    assert sorted(ids)[:last] == list(range(1, last + 1))
