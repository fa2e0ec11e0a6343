"""kubelet's messages: the committed Python is generated from the .proto files, which agree with Kubernetes."""

from __future__ import annotations

import pytest
from google.protobuf.descriptor import Descriptor, FileDescriptor

from deviceplugin.kubelet import device_plugin_pb2, pod_resources_pb2

from .generate import PACKAGE, generated


def test_the_committed_messages_are_the_generated_ones() -> None:
    kept = {file.name: file.read_bytes() for file in PACKAGE.glob("*_pb2.py*")}
    assert kept == generated(), "run: python -m tests.deviceplugin.kubelet.generate"


# As k8s.io/kubelet publishes them: v1beta1 of device plugins, v1 of pod-resources.
NUMBERS = {
    "v1beta1.RegisterRequest": {"version": 1, "endpoint": 2, "resource_name": 3, "options": 4},
    "v1beta1.DevicePluginOptions": {"pre_start_required": 1, "get_preferred_allocation_available": 2},
    "v1beta1.ListAndWatchResponse": {"devices": 1},
    "v1beta1.Device": {"ID": 1, "health": 2, "topology": 3},
    "v1beta1.TopologyInfo": {"nodes": 1},
    "v1beta1.NUMANode": {"ID": 1},
    "v1beta1.AllocateRequest": {"container_requests": 1},
    "v1beta1.ContainerAllocateRequest": {"devices_ids": 1},
    "v1beta1.AllocateResponse": {"container_responses": 1},
    "v1beta1.ContainerAllocateResponse": {"envs": 1, "mounts": 2, "devices": 3, "cdi_devices": 5},
    "v1beta1.Mount": {"container_path": 1, "host_path": 2, "read_only": 3},
    "v1beta1.DeviceSpec": {"container_path": 1, "host_path": 2, "permissions": 3},
    "v1beta1.CDIDevice": {"name": 1},
    "v1beta1.PreStartContainerRequest": {"devices_ids": 1},
    "v1.ListPodResourcesResponse": {"pod_resources": 1},
    "v1.PodResources": {"name": 1, "namespace": 2, "containers": 3},
    "v1.ContainerResources": {"name": 1, "devices": 2},
    "v1.ContainerDevices": {"resource_name": 1, "device_ids": 2},
    "v1.AllocatableResourcesResponse": {"devices": 1},
}


def numbers(message: Descriptor) -> dict[str, int]:
    return {field.name: field.number for field in message.fields}


@pytest.mark.parametrize(
    "file", [device_plugin_pb2.DESCRIPTOR, pod_resources_pb2.DESCRIPTOR], ids=lambda file: file.name
)
def test_fields_have_the_numbers_of_kubernetes(file: FileDescriptor) -> None:
    found = {message.full_name: numbers(message) for message in file.message_types_by_name.values()}
    assert {name: fields for name, fields in found.items() if fields} == {
        name: fields for name, fields in NUMBERS.items() if name.startswith(f"{file.package}.")
    }
