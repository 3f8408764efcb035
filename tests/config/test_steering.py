from __future__ import annotations

from pathlib import Path

import pytest

from towpath.config.settings import Settings
from towpath.config.steering import AdmissionDef, ControlDef, LimitsDef, ScalingDef
from towpath.job import load

GUIDE = Path(__file__).parents[2] / "docs" / "control.md"
JOBS = Path(__file__).parents[1] / "data" / "jobs"


def test_every_key_is_read() -> None:
    control = load(JOBS / "good" / "control.yaml").control
    assert control is not None and control.scaling is not None and control.admission is not None
    assert (control.policy, control.options) == ("dcape", {"every": 30, "redistribution": "balance"})
    assert (control.every_us, control.renew_us, control.advise) == (5_000_000, 60_000_000, True)
    assert control.limits == LimitsDef.model_validate({"rest": "2 minutes", "per_node": 5, "per_minute": 20})
    assert control.admission.most_load == 0.7
    assert (control.scaling.least, control.scaling.most, control.scaling.after_us) == (2, 4, 60_000_000)


def test_a_job_without_the_section_is_not_steered() -> None:
    assert load(JOBS / "good" / "smallest.yaml").control is None


@pytest.mark.parametrize("model", [ControlDef, LimitsDef, AdmissionDef, ScalingDef], ids=lambda model: model.__name__)
def test_every_key_is_in_the_guide(model: type[Settings]) -> None:
    guide = GUIDE.read_text(encoding="utf-8")
    keys = [field.alias or name for name, field in model.model_fields.items()]
    assert [key for key in keys if f"| `{key}` |" not in guide] == []
