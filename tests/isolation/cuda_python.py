"""A program that uses CUDA by cuda-python. It writes, as JSON, what it gets of each card: the error of each way to take
more than its share, what is free and the total in MiB, and the error of taking what fits.
"""

import json
import sys

from cuda.bindings import driver  # type: ignore[import-not-found]  # unpacked for this program alone

MIB = 1 << 20
TOO_MUCH = 2000 * MIB
FITS = 200 * MIB


def made_on(device: int) -> object:
    properties = driver.CUmemAllocationProp()
    properties.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    properties.location.id = device
    return properties


def of_card(device: int) -> list[object]:
    _, context = driver.cuDevicePrimaryCtxRetain(device)
    driver.cuCtxSetCurrent(context)
    refused = [
        driver.cuMemAlloc(TOO_MUCH)[0],
        driver.cuMemAllocManaged(TOO_MUCH, 1)[0],
        driver.cuMemAllocAsync(TOO_MUCH, 0)[0],
        driver.cuMemCreate(TOO_MUCH, made_on(device), 0)[0],
    ]
    _, free, total = driver.cuMemGetInfo()
    return [[error.name for error in refused], free // MIB, total // MIB, driver.cuMemAlloc(FITS)[0].name]


assert driver.cuInit(0) == (driver.CUresult.CUDA_SUCCESS,)
json.dump([of_card(device) for device in range(driver.cuDeviceGetCount()[1])], sys.stdout)
