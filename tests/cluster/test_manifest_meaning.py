"""kubectl defines the meaning of a manifest: Halfcard must read it to the same JSON.

Only integers beyond 63 bits differ on purpose: kubectl rounds them.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from devcluster.cluster import Cluster
from kube.manifests.documents import parse, to_json

MANIFEST = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: meaning, namespace: default}
words: [yes, Yes, YES, yEs, no, on, ON, oN, off, y, Y, n, N, true, True, FALSE, ~, null, Null, "yes", 'no', -, '']
empty:
integers: [0, 30, -7, +7, 1_000, 0x1F, -0b101, 0o17, 017, 08, 0x, _1, 00]
numbers: [0.3, 0.30, 3e1, 0.03, 30.0, .5, +1.5E+3, -.5, 5., 5.e2, 00.5, 1_000.5]
texts: [30m, 5Gi, 0.03k, 1.2.3, 2020-01-31, 2020-01-31T10:00:00Z, 12:30:45, 1e, e1, 1e999, -_, 0b2]
tagged: [!!str 30, !!int "30", !!binary aGFsZg==, !!str yes, !!bool "on", ! 30]
defaults: &defaults {a: 1, b: {c: 2}}
merged:
  <<: *defaults
  d: 3
keys: {1: x, yes: x, off: x, 0x10: x}
block: |
  a
   b
folded: >-
  a
  b
"""


def read_json(text: str | bytes) -> Any:
    """Reads numbers by value: kubectl writes 0.30 as 0.3."""
    return json.loads(text, parse_float=Decimal, parse_int=Decimal)


def test_kubectl_reads_every_scalar_as_halfcard_does(cluster: Cluster) -> None:
    done = cluster.kubectl("create", "--dry-run=client", "--validate=false", "-ojson", "-f-", stdin=MANIFEST)
    assert done.code == 0, done.stderr
    (document,) = parse(MANIFEST, "meaning.yaml")
    by_halfcard, by_kubectl = read_json(to_json(document.obj)), read_json(done.stdout)
    assert {key: by_halfcard[key] for key in by_halfcard if key != "metadata"} == {
        key: by_kubectl[key] for key in by_kubectl if key != "metadata"
    }
