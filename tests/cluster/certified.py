"""An installation with certificate controllers: reads and changes its Secrets and webhook configurations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from certs import objects
from certs.chains import CONFIGURATIONS, ObjectPath
from certs.objects import Object
from certs.store import JSON_PATCH
from devcluster.cluster import Cluster
from devcluster.control_plane.client import ApiResponse

from .certs_service import CertificateControllers, CertifiedInstallation
from .manifests import share


@dataclass(frozen=True)
class Certified:
    cluster: Cluster
    webhook: CertifiedInstallation
    controllers: CertificateControllers

    def create(self) -> ApiResponse:
        return self.webhook.create("default", share("probe"), dry_run=True)

    def secret(self, place: ObjectPath) -> Object:
        found: Object = self.cluster.request("GET", str(place)).must()
        return found

    def set_entries(self, place: ObjectPath, entries: dict[str, bytes]) -> None:
        self.cluster.request("PUT", str(place), objects.with_entries(self.secret(place), entries)).must()

    def patch(self, place: ObjectPath, operations: Any) -> None:
        client, admin = self.cluster.client, self.cluster.admin
        client.request(admin, "PATCH", str(place), operations, content_type=JSON_PATCH).must()

    def bundles(self) -> set[bytes]:
        return {bundle for place in CONFIGURATIONS for bundle in objects.bundles(self.secret(place))}

    def wait_until_works(self) -> None:
        """Waits until all certificates are in order and pods are admitted; a CA lost in a test may still be in use."""
        self.controllers.wait_for("until")
        self.cluster.wait_until(lambda: self.create().ok, what="a pod to be admitted")
