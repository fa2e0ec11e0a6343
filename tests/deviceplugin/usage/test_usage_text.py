from __future__ import annotations

from dataclasses import replace

from deviceplugin.gpus.interface import Process
from deviceplugin.usage.usage_text import usage_text
from tests.cli.command import too_wide

from ..usages import NODE, SEED, load, owner, tenant, tensorflow, usage


def test_cards_are_listed_before_their_containers() -> None:
    tenants = [SEED, tenant(tensorflow(core=100), "whole", apps=["tensorflow"])]
    loads = {"GPU-0": load(*(Process(pid, 100, 2) for pid in range(7, 12)))}
    assert usage_text(usage(tenants, loads, {pid: owner("vcuda") for pid in range(7, 12)})) == (
        "gpu1: 2 cards\n"
        "CARD  MODEL     MODE       CORES % USED/GIVEN  MEMORY MiB USED/GIVEN/TOTAL\n"
        "0     Tesla T4  shared                  10/10               500/1024/15109\n"
        "1     Tesla T4  exclusive               ?/100                ?/15109/15109\n"
        "\n"
        "CONTAINER                 CARD  CORES % USED/GIVEN  MEMORY MiB USED/GIVEN  PROCESSES\n"
        "default/vcuda/tensorflow  0                  10/10               500/1024  7,8,9 and 2 more\n"
        "default/whole/tensorflow  1                  0/100                0/15109\n"
    )


def test_problems_are_listed_below_the_cards() -> None:
    sick = replace(NODE, cards=(NODE.cards[0], replace(NODE.cards[1], why_not="Xid 79: it fell off the bus")))
    text = usage_text(usage([], {"GPU-0": load(Process(7, 300, 5), Process(8, 1, 0))}, {8: owner("x")}, sick))
    assert text.endswith(
        "card 0: process 7 uses 300 MiB: it belongs to no pod\n"
        "card 0: process 8 uses 1 MiB: it belongs to pod uid-x, which was not granted the card\n"
        "card 1 gets nothing new: Xid 79: it fell off the bus\n"
    )


def test_fake_cards_are_marked() -> None:
    assert usage_text(replace(usage([]), is_made_up=True)).startswith("gpu1: 2 cards, all made up\n")


def test_long_names_stay_within_a_hundred_columns() -> None:
    long = tenant(tensorflow(core=10, memory=4), "p" * 200, apps=["tensorflow"])
    sick = replace(NODE, cards=(replace(NODE.cards[0], why_not="why " * 100, model="NVIDIA H100 80GB HBM3"),))
    assert too_wide(usage_text(usage([long], node=sick))) == []


def test_terminal_control_characters_are_escaped() -> None:
    steering = replace(NODE, cards=(replace(NODE.cards[0], model="\x1b[31mT4", why_not="\x1b[2J"),))
    assert "\x1b" not in usage_text(usage([], node=steering))
