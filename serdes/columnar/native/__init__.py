"""The kernels as machine code. Needs Numba."""
