"""The one part of the build that pyproject.toml cannot say: an optional extension, for every Python from 3.11 on.

Without a compiler the package installs all the same, and NumPy serves (``ringfence.kernels``). On Python 3.10 the
buffer protocol is not yet part of the limited API, so the extension is built for that version alone.
"""

import sys

from setuptools import Extension, setup

LIMITED = sys.version_info >= (3, 11)

setup(
    ext_modules=[
        Extension(
            "ringfence.kernels._native",
            ["src/ringfence/kernels/_native.c"],
            define_macros=[("Py_LIMITED_API", "0x030B0000")] if LIMITED else [],
            py_limited_api=LIMITED,
            # a fused multiply-add would round once where NumPy rounds twice; both have to give the same bits
            extra_compile_args=[] if sys.platform == "win32" else ["-O3", "-ffp-contract=off"],
            optional=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if LIMITED else {},
)
