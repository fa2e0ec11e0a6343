"""Records of granted cards: only users trusted by the settings may write, change or remove them."""

from __future__ import annotations

from typing import Final

import pytest

from devcluster.control_plane.users import User
from devcluster.services.installation import TRUSTED_USER, Installation
from halfcard import names
from tests.builders import pod

from .manifests import SHARE, complete, share

RECORDS: Final = (
    f"{names.OWN_PREFIX}cards",
    "tencent.com/predicate-gpu-idx-0",
    "tencent.com/gpu-assigned",
    "ALIYUN_COM_GPU_MEM_IDX",
    "hami.io/vgpu-devices-allocated",
    "volcano.sh/gpu-index",
)
ASSIGNED: Final = "tencent.com/gpu-assigned"


@pytest.fixture
def tenant(webhook: Installation, space: str) -> User:
    return webhook.cluster.tenant(space, "alice")


@pytest.fixture
def agent(webhook: Installation, space: str) -> User:
    return webhook.cluster.tenant(space, TRUSTED_USER)


def annotate(webhook: Installation, space: str, change: str, user: User) -> tuple[int, str]:
    done = webhook.cluster.kubectl("-n", space, "annotate", "--overwrite", "pod", "p", change, user=user)
    return done.code, done.stderr


@pytest.mark.parametrize("record", RECORDS)
def test_a_tenant_cannot_create_a_pod_with_a_record(
    webhook: Installation, space: str, tenant: User, record: str
) -> None:
    refused = webhook.create(space, complete(pod().asks(**SHARE).annotated({record: "0"})), user=tenant)
    assert refused.status == 403
    assert f'metadata.annotations["{record}"]: got "0"' in refused.body["message"]


def test_a_tenant_can_neither_forge_nor_change_nor_remove_a_record(
    webhook: Installation, space: str, tenant: User, agent: User
) -> None:
    webhook.create(space, share("p"), user=tenant).must()
    code, why = annotate(webhook, space, f"{ASSIGNED}=true", tenant)
    assert code == 1 and "remove it [HC020]" in why
    assert annotate(webhook, space, f"{ASSIGNED}=false", agent) == (0, "")
    for change in (f"{ASSIGNED}=true", f"{ASSIGNED}-"):
        code, why = annotate(webhook, space, change, tenant)
        assert code == 1 and "put it back [HC020]" in why
    assert webhook.get(space, "pod", "p")["metadata"]["annotations"][ASSIGNED] == "false"


def test_a_tenant_may_change_other_fields_of_a_pod_with_a_record(
    webhook: Installation, space: str, tenant: User, agent: User
) -> None:
    webhook.create(space, share("p"), user=tenant).must()
    annotate(webhook, space, f"{ASSIGNED}=true", agent)
    assert annotate(webhook, space, "note=mine", tenant) == (0, "")


def test_an_image_can_be_changed_in_a_repaired_pod(webhook: Installation, space: str, tenant: User) -> None:
    webhook.create(space, share("p"), user=tenant).must()
    done = webhook.cluster.kubectl(
        "-n", space, "set", "image", "pod/p", "containers-0=example.invalid/image:2", user=tenant
    )
    assert done.code == 0, done.stderr
