"""Pictures and the report of a run.

- :func:`write_report`: ``figures/*.png`` and a self-contained ``report.html``.
- :func:`write_comparison`: a page that compares runs.
- :func:`write_animation`: a test sample over time, as a GIF or a video.
- :func:`plot`: a sample of fields, as a figure of matplotlib.
- :func:`plot_file`: pictures of the first samples of a data file.
"""

from nfsgeo.report.figures import plot, plot_file
from nfsgeo.report.films import write_animation
from nfsgeo.report.html import write_comparison, write_report

__all__ = ["plot", "plot_file", "write_animation", "write_comparison", "write_report"]
