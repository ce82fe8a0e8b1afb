"""Pictures and the report of a run.

- :func:`write_report`: ``figures/*.png`` and a self-contained ``report.html``.
- :func:`plot_file`: pictures of the first samples of a data file.
"""

from nfsgeo.report.file_figures import plot_file
from nfsgeo.report.html import write_report

__all__ = ["plot_file", "write_report"]
