"""Errors at the points of each node type, as a table of the report."""

from nfsgeo.report.tables import error_tables


def test_a_table_by_node_type():
    errors = {"mae": 0.5, "rmse": 1.0, "rel_l2": 0.25}
    summary = {"model": "nfs", "test": errors, "baselines": {}}
    types = {"normal": errors, "wall": {"mae": 2.0, "rmse": 3.0, "rel_l2": 4.0}}
    titles = [title for title, *_ in error_tables(summary)]
    *_, (title, _, table) = error_tables(summary | {"by_node_type": types})
    assert title == "By node type" not in titles
    assert [*table.index] == ["normal", "wall"] and table.loc["wall", "MAE"] == 2
