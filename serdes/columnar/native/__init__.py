"""The kernels as machine code: compiled by Numba in a child process, stored, and linked with llvmlite."""
