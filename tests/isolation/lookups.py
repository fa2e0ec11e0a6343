"""Prints what cuGetProcAddress answers to names on standard input: `python lookups.py LIBRARY` writes JSON.

The key is the name, the version of CUDA and the flags that were asked; the answer is a symbol and its file, or null.
"""

import ctypes
import itertools
import json
import sys

VERSIONS = (2000, 3020, 4000, 6050, 7050, 9020, 10000, 11000, 11020, 11030, 11040, 11080, 12000, 12050, 13000)
FLAGS = (0, 1, 2)  # default, legacy stream, stream of the thread


class Symbol(ctypes.Structure):
    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("at", ctypes.c_void_p),
    )


libc = ctypes.CDLL(None)


def described(address: int | None) -> list[str] | None:
    symbol = Symbol()
    if not address or not libc.dladdr(ctypes.c_void_p(address), ctypes.byref(symbol)):
        return None
    return [symbol.name.decode() if symbol.at == address and symbol.name else hex(address), symbol.file.decode()]


def main() -> None:
    driver = ctypes.CDLL(sys.argv[1])
    found = {}
    for name, version, flags in itertools.product(sys.stdin.read().split(), VERSIONS, FLAGS):
        address = ctypes.c_void_p()
        driver.cuGetProcAddress(name.encode(), ctypes.byref(address), version, ctypes.c_uint64(flags))
        found[f"{name} {version} {flags}"] = described(address.value)
    json.dump(found, sys.stdout)


main()
