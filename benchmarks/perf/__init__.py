"""Speed and memory of variants relative to references.

- :mod:`~nfsgeo_benchmarks.perf.entries`: what is measured, ``ENTRIES``
- :mod:`~nfsgeo_benchmarks.perf.measure`: a variant and its reference in turn

Imports nothing, so that a measured process holds only what its work needs.
"""
