"""A program that uses CUDA: `python client.py WAY` calls functions of libcuda.so.1 as lines of standard input say.

A line is JSON: the function, then its arguments: a number, a text in hexadecimal for memory that the function reads, or
null for a number that it writes. The answer is the function's result and the numbers that it wrote. `@NAME VERSION`
instead of a function asks cuGetProcAddress for it, `@@NAME VERSION` the second version of that; `!fork` continues in a
child, `!exec` in this program from its start, `!load WAY` with another copy or handle of the library; `=FUNCTION`
answers its address.
"""

import ctypes
import json
import os
import sys

LIBRARY = "libcuda.so.1"
RTLD_NOW, RTLD_DEEPBIND, NEW_NAMESPACE = 2, 8, -1

libc = ctypes.CDLL(None)
libc.dlmopen.restype = libc.dlsym.restype = ctypes.c_void_p
libc.dlsym.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
handles: list[int] = []


def load(way: str) -> None:
    """The way is `deepbind`, `dlmopen`, or a path or name of the library."""
    if way == "dlmopen":
        handles.append(libc.dlmopen(ctypes.c_long(NEW_NAMESPACE), LIBRARY.encode(), RTLD_NOW))
    elif way == "deepbind":
        handles.append(ctypes.CDLL(LIBRARY, mode=RTLD_NOW | RTLD_DEEPBIND)._handle)
    else:
        handles.append(ctypes.CDLL(way)._handle)
    assert handles[-1], way


def address(name: str) -> int:
    if name.startswith("@"):
        return asked(*name.lstrip("@").split(), second="@@" in name)
    found = libc.dlsym(handles[-1], name.encode())
    assert found, name
    return int(found)


def asked(name: str, version: str, *, second: bool) -> int:
    found, status = ctypes.c_void_p(), ctypes.c_int(-1)
    where = address("cuGetProcAddress_v2" if second else "cuGetProcAddress")
    more = [ctypes.byref(status)] if second else []
    error = ctypes.CFUNCTYPE(ctypes.c_int)(where)(
        name.encode(), ctypes.byref(found), int(version), ctypes.c_uint64(0), *more
    )
    assert error == 0 and found.value and (status.value == 0) == second, (name, error, status)
    return found.value


def call(name: str, *arguments: int | str | None) -> list[int]:
    outs: list[ctypes.c_uint64] = []
    passed: list[object] = []
    for argument in arguments:
        if argument is None:
            outs.append(ctypes.c_uint64())
            passed.append(ctypes.byref(outs[-1]))
        elif isinstance(argument, str):
            passed.append(ctypes.create_string_buffer(bytes.fromhex(argument)))
        else:
            passed.append(ctypes.c_uint64(argument))
    return [ctypes.CFUNCTYPE(ctypes.c_int)(address(name))(*passed), *(out.value for out in outs)]


def fork() -> None:
    child = os.fork()
    if child:
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def answer(name: str, *arguments: int | str | None) -> list[int]:
    if name.startswith("="):
        return [0, address(name[1:])]
    if not name.startswith("!"):
        return call(name, *arguments)
    if name == "!fork":
        fork()
    elif name == "!exec":
        os.execv(sys.executable, [sys.executable, *sys.argv[:2], "executed"])
    else:
        load(name.removeprefix("!load "))
    return [0]


def answers(numbers: list[int]) -> None:
    sys.stdout.write(json.dumps(numbers) + "\n")
    sys.stdout.flush()


def main() -> None:
    load(sys.argv[1])
    if "executed" in sys.argv:
        answers([0])
    for line in sys.stdin:
        answers(answer(*json.loads(line)))


main()
