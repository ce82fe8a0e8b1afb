"""Speed and memory, each relative to something measured beside it.

- :mod:`~nfsgeo_benchmarks.perf.entries`: what is measured, ``ENTRIES``
- :mod:`~nfsgeo_benchmarks.perf.work`: the work of their variants and references
- :mod:`~nfsgeo_benchmarks.perf.measure`: both in turn, each in a process of its own

Imports nothing, so that a measured process holds only what its work needs.
"""
