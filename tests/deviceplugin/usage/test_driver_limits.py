"""Each limit is set once; what fails is tried again, and what the driver cannot do is not."""

from __future__ import annotations

from deviceplugin.gpus.interface import GpusError, NoMemoryLimitsError
from deviceplugin.usage.driver_limits import DriverLimits, MemoryLimit

ONE, OTHER = MemoryLimit("one", "/pods/one", "GPU-1", 500), MemoryLimit("other", "/pods/other", "GPU-1", 700)
SECOND_CARD = ONE._replace(card="GPU-2")


class Driver:
    """Sets limits, but answers an error where one is given for a card."""

    def __init__(self) -> None:
        self.errors: dict[str, GpusError] = {}
        self.calls: list[tuple[str, str, int]] = []
        self.limits = DriverLimits(self.set_limit)

    def set_limit(self, card: str, cgroup: str, mib: int) -> None:
        self.calls.append((card, cgroup, mib))
        if error := self.errors.get(card):
            raise error


def test_each_limit_is_set_once_until_its_cgroup_has_ended() -> None:
    driver = Driver()
    for wanted in ([ONE], [ONE, OTHER], [OTHER], [ONE]):
        driver.limits.hold(wanted)
    assert driver.calls == [("GPU-1", "/pods/one", 500), ("GPU-1", "/pods/other", 700), ("GPU-1", "/pods/one", 500)]
    assert driver.limits.slots == {"one"}


def test_a_limit_that_could_not_be_set_is_tried_again() -> None:
    driver = Driver()
    driver.errors = {"GPU-1": GpusError("the driver does not answer")}
    driver.limits.hold([ONE])
    assert driver.limits.slots == frozenset() and driver.limits.can("GPU-1")
    driver.errors = {}
    driver.limits.hold([ONE])
    assert driver.limits.slots == {"one"}


def test_a_card_that_cannot_is_not_asked_again_and_its_containers_are_not_held_by_the_driver() -> None:
    driver = Driver()
    driver.errors = {"GPU-2": NoMemoryLimitsError("an old driver")}
    for _ in range(2):
        driver.limits.hold([ONE, SECOND_CARD, OTHER])
    assert [card for card, _, _ in driver.calls] == ["GPU-1", "GPU-2", "GPU-1"]
    assert driver.limits.slots == {"other"}
    assert not driver.limits.can("GPU-2")
