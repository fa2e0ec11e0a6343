"""Answers `curl -s --cacert FILE -H HEADER URL -d DATA` where curl is not installed."""

from __future__ import annotations

import argparse
import ssl
import sys
import urllib.request

parser = argparse.ArgumentParser()
parser.add_argument("-s", action="store_true")
parser.add_argument("--cacert")
parser.add_argument("-H")
parser.add_argument("-d")
parser.add_argument("url")
wanted = parser.parse_args()

name, _, value = wanted.H.partition(": ")
request = urllib.request.Request(wanted.url, wanted.d.encode(), {name: value})
with urllib.request.urlopen(request, context=ssl.create_default_context(cafile=wanted.cacert)) as answer:
    sys.stdout.buffer.write(answer.read())
