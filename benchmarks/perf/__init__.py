"""Speed and memory, each relative to something measured beside it.

- :mod:`~nfsgeo_benchmarks.perf.entries`: what is measured, ``ENTRIES``
- :mod:`~nfsgeo_benchmarks.perf.entry`: a variant, its reference, and bounds
- :mod:`~nfsgeo_benchmarks.perf.runner`: both in turn, each in a process of its own
- :mod:`~nfsgeo_benchmarks.perf.results`: a table and a picture

Imports nothing, so that a measured process holds only what its work needs.
"""
