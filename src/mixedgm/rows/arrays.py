"""The name of a device -> where its arrays live, and the functions to compute with them.

Functions are those of the Python array API, which NumPy, PyTorch and others share.  Beyond it,
arrays are only assigned to at positions given as integers, which all of these libraries know.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixedgm.base.errors import ParameterError

Array = Any
"""An array of the device: the libraries' arrays have no type in common."""

_INSTALL = "pip install 'mixedgm[gpu]'"
# What is taken on a device that does not tell how much memory it has.
_WITHOUT_MEMORY_INFO = 2**31


@dataclass(frozen=True, eq=False)
class Arrays:
    """Arrays of one library on one device."""

    xp: Any
    """The functions of the array API."""
    name: str
    """The name that the user has given the device."""
    device: Any = None
    """The library's own name of it."""

    def put(self, values: NDArray[Any]) -> Array:
        """Copy an array to the device."""
        return self.xp.asarray(np.ascontiguousarray(values), device=self.device, copy=True)

    def get(self, array: Array) -> NDArray[Any]:
        """Copy an array from the device."""
        from array_api_compat import to_device

        host = np.asarray(to_device(array, "cpu"))
        return host if self.is_gpu else host.copy()

    def zeros(self, shape: tuple[int, ...]) -> Array:
        """Numbers of double precision, all zero."""
        return self.xp.zeros(shape, dtype=self.xp.float64, device=self.device)

    def ones(self, shape: tuple[int, ...]) -> Array:
        """Numbers of double precision, all one."""
        return self.xp.ones(shape, dtype=self.xp.float64, device=self.device)

    @property
    def is_gpu(self) -> bool:
        """Whether the device has memory of its own."""
        return self.name.startswith("cuda")

    def free_bytes(self) -> int:
        """Memory that may be used."""
        if not self.is_gpu:
            return _WITHOUT_MEMORY_INFO
        import torch

        free, _ = torch.cuda.mem_get_info(self.device)
        # What the library keeps for later arrays is free as well.
        kept = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        return int(free + kept)

    def is_full(self, error: BaseException) -> bool:
        """Whether an error says that the device has no memory left."""
        return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"

    def release(self) -> None:
        """Return memory that the library keeps to the device."""
        if self.is_gpu:
            import torch

            torch.cuda.empty_cache()


def arrays_on(name: str) -> Arrays:
    """The arrays of a device: "cuda" or "cuda:1" for a GPU; "numpy" or "torch" for tests.

    ParameterError where there is no such device, or no library for it.

    Examples
    --------
    >>> arrays = arrays_on("numpy")
    >>> arrays.get(arrays.put(np.arange(3)) + 1).tolist()
    [1, 2, 3]
    """
    if name == "numpy":
        import array_api_compat.numpy

        return Arrays(array_api_compat.numpy, name, "cpu")
    try:
        import array_api_compat.torch
        import torch
    except ImportError as error:
        raise ParameterError(
            f"device={name!r} needs PyTorch, which cannot be imported ({error}). Install it with: "
            f"{_INSTALL}; or leave device='cpu'."
        ) from error
    if name == "torch":
        return Arrays(array_api_compat.torch, name, torch.device("cpu"))
    if not torch.cuda.is_available():
        raise ParameterError(
            f"device={name!r} needs an NVIDIA GPU, and PyTorch {torch.__version__} finds none. "
            "Where there is one, check its driver (nvidia-smi) and that PyTorch was installed with "
            "CUDA; or leave device='cpu'."
        )
    device = torch.device(name if ":" in name else f"cuda:{torch.cuda.current_device()}")
    if device.index >= torch.cuda.device_count():
        count = torch.cuda.device_count()
        names = " or ".join(f"'cuda:{k}'" for k in range(count))
        raise ParameterError(f"device={name!r} is not there: use {names}.")
    return Arrays(array_api_compat.torch, name, device)
