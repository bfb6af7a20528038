"""The inner loops, in plain Python that Numba can compile: decode rows, encode rows, scan frames and records."""
