"""The order of files is that of the numbers in their names, or is asked for."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nfsgeo
from nfsgeo.data.io.file_order import FileOrder, as_listed
from nfsgeo.errors import UserError


@pytest.mark.parametrize(
    "names",
    [
        "a_1.csv a_2.csv a_10.csv",
        "run-1.csv run-2.csv run-10.csv",
        "t_-10.csv t_-5.csv t_0.csv t_5.csv",
        "-0.5.csv 0.csv 0.5.csv",
        "x=+1.vtu x=+2.vtu x=+10.vtu",
        "duct_9.000000e-01.csv duct_9.500000e-01.csv duct_1.000000e+00.csv",
        "u_1e-05.vtk u_0.0001.vtk u_0.001.vtk u_0.01.vtk",
        "u_1.0D-01.dat u_2.0D-01.dat u_1.0D+00.dat",
        "v_1e5.csv v_2e5.csv v_1e6.csv",
        "2.5e3.csv 1e4.csv",
        "plane/0/p.vtk plane/0.05/p.vtk plane/0.1/p.vtk plane/0.15/p.vtk",
        "1e-05/U.vtk 0.0005/U.vtk 0.001/U.vtk",
        "step_2/a_1.csv step_2/a_10.csv step_10/a_1.csv",
        "q_1.csv q_1.5.csv q_2.csv",
        "plot.0001 plot.0002 plot.0010",
        "500ms.csv 1s.csv 2s.csv",
        "sim_10h.csv sim_2d.csv",
        "2026-01-31.csv 2026-02-01.csv",
        "20260131T0600.csv 20260201T0000.csv",
        "15-02-2026.csv 03-03-2026.csv",
        "12Jan2026.csv 3Feb2026.csv 1Jan2027.csv",
        "december_2025.csv january_2026.csv february_2026.csv",
        "Jan_12_2026.csv Feb_3_2026.csv",
        "jan/u.csv feb/u.csv mar/u.csv",
        "wrfout_d01_2026-01-31_18:00:00 wrfout_d01_2026-02-01_00:00:00",
        "a.csv b.csv c.csv",
    ],
)
def test_numbers_are_read_as_what_they_are(names):
    paths = [*map(Path, names.split())]
    for given_paths in (sorted(paths), sorted(paths, key=str), paths[::-1]):
        order = FileOrder(given_paths)
        assert order.paths == paths and order.doubt is None


@pytest.mark.parametrize(
    "names",
    [
        "q_0.1.csv q_0.15.csv q_0.2.csv",
        "q_0p15.csv q_0p2.csv",
        "q_0,15.csv q_0,2.csv",
        "1.9/p.csv 1.10/p.csv",
        "t-10.csv t-5.csv t0.csv",
        "01-02-2026.csv 02-01-2026.csv",
        "01022026.csv 31012026.csv",
        "01-02-26.csv 03-01-26.csv",
        "jan25.csv jan26.csv feb25.csv",
        "initial.csv final.csv",
        "flow.csv flow_1.csv",
        "1.csv 01.csv",
        "2pm.csv 11am.csv",
        "sst_11-2019.csv sst_01-2020.csv",
        "sst_Q4_2019.csv sst_Q1_2020.csv",
        "s_364_2019.csv s_001_2020.csv",
        "sst_112019.csv sst_012020.csv",
        "rain_311219.csv rain_010120.csv",
        "s_31_12_19.csv s_01_01_20.csv",
        "s 31 12 2019.csv s 01 01 2020.csv",
        "s_311220191200.csv s_010120200000.csv",
        "12Z31DEC2019.csv 00Z01JAN2020.csv",
        "f_99-12-31.csv f_00-01-01.csv",
        "re5e4.csv re1e5.csv",
        "z-10.csv z-5.csv",
        "n500.csv n1,000.csv",
        "t9em4.csv t1em3.csv",
        "t_0.200-100.csv t_0.100-099.csv",
    ],
)
def test_two_possible_orders_are_asked_about(names, one_line):
    order = FileOrder([*map(Path, names.split())])
    assert "either may come first" in one_line(order.check)


FORMS = ["{:g}", "{:.6e}", "{:.3E}", "{:.4f}", "{:012.6f}", "{:+.6e}", "{:+.4f}"]


@given(
    steps=st.sets(st.integers(-(10**6), 10**6), min_size=2, max_size=6),
    exponent=st.integers(-8, 3),
    form=st.sampled_from(FORMS),
    around=st.sampled_from(["{}.csv", "u_{}.vtu", "t={}", "{}/p.vtk", "a2_{}_v3.csv"]),
)
def test_no_order_but_that_of_time_is_taken_unasked(steps, exponent, form, around):
    """Whatever way a program writes its times into names."""
    times = sorted(step * 10.0**exponent for step in steps)
    texts = [form.format(time) for time in times]
    distinct = [*map(float, texts)]
    if any(b <= a for a, b in zip(distinct, distinct[1:], strict=False)):
        return  # rounded to the same name
    paths = [Path(around.format(text)) for text in texts]
    order = FileOrder(sorted(paths))
    assert order.doubt or order.paths == paths


@given(st.lists(st.text("aeE0159.-+_/d ", min_size=1), unique=True, max_size=5))
def test_any_names_have_an_order_or_a_doubt(names):
    paths = sorted({Path("base") / name.strip("/. ") for name in names})
    order = FileOrder(paths)
    assert sorted(order.paths) == paths
    assert FileOrder(paths[::-1]).paths == order.paths


def test_orders_of_shells_are_nobodys_choice():
    plain = [Path("plane/0.05/p"), Path("plane/0.1/p"), Path("plane/0/p")]
    assert as_listed(plain) and as_listed(sorted(plain))
    assert as_listed([*map(Path, ["a_1", "A_10", "a_2", "B_1"])])
    assert not as_listed([*map(Path, ["step_2", "step_1", "step_3"])])


def test_time_steps_are_read_in_the_order_of_their_names(tmp_path, one_line, caplog):
    """A user's own order holds, and is told where names contradict it."""

    def series(*names):
        for name in names:
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"x,u\n0,{name}\n1,1\n".replace(f",{name}", ",7"))
        return [tmp_path / name for name in names]

    def steps(paths, **options):
        times = np.arange(float(len(paths)))
        return nfsgeo.open(paths, series="time-steps", times=times, **options)

    for number, path in enumerate(listed := series("0.9.csv", "1.0.csv", "1.05.csv")):
        path.write_text(f"x,u\n0,{number}\n1,1\n")
    assert steps(listed).read(0, slice(None))[0, :, 0].tolist() == [0, 1, 2]
    assert "0.9.csv to" in caplog.text
    assert steps(listed[::-1]).read(0, slice(None))[0, :, 0].tolist() == [2, 1, 0]
    shuffled = [listed[1], listed[2], listed[0]]
    assert "in no order" in one_line(steps, shuffled)
    odd = series("final.csv", "initial.csv")
    assert "either may come first" in one_line(steps, odd)
    assert nfsgeo.open(odd, series="samples").num_samples == 2
    steps(odd[::-1])  # in words of the user's own


def test_a_file_is_taken_once(tmp_path, caplog):
    (tmp_path / "a.csv").write_text("x,t,u\n0,0,1\n0,1,1\n1,0,2\n1,1,2\n")
    (tmp_path / "b.csv").write_text("x,t,u\n0,0,3\n0,1,3\n1,0,4\n1,1,4\n")
    os.symlink(tmp_path / "a.csv", tmp_path / "c.csv")
    os.link(tmp_path / "a.csv", tmp_path / "d.csv")
    assert nfsgeo.open(tmp_path).num_samples == 2
    assert caplog.text.count("taken once") == 2
    again = [
        tmp_path / "a.csv",
        tmp_path / "b.csv",
        tmp_path / ".." / tmp_path.name / "a.csv",
    ]
    assert nfsgeo.open(again).num_samples == 2


def test_the_doubt_names_both_files(tmp_path):
    order = FileOrder([tmp_path / "q_0.15.csv", tmp_path / "q_0.2.csv"])
    with pytest.raises(UserError, match=r"q_0\.\d+\.csv and q_0\.\d+\.csv"):
        order.check()
