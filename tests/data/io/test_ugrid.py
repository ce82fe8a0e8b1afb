"""Fields on faces and edges of unstructured meshes whose file has nodes alone."""

import numpy as np
import pytest
import xarray

import nfsgeo

X, Y = np.array([0.0, 1, 2, 0, 1, 2]), np.array([0.0, 0, 0, 1, 1, 1])
FACES = [[0, 1, 4, 3], [1, 2, 5, -1], [1, 5, 4, -1]]
EDGES = [[0, 1], [1, 2], [2, 5]]
RNG = np.random.default_rng(0)


def mesh(path, places, start=0, lon=0.0, transposed=False, **more):
    """A file with a field called as the place that it is on, at four times."""
    faces = np.array([[k + start if k >= 0 else -999 for k in f] for f in FACES], "i4")
    dims, about = (
        ("face", "corner"),
        {"start_index": start, "_FillValue": np.int32(-999)},
    )
    faces, dims = (faces.T, dims[::-1]) if transposed else (faces, dims)
    topology = {
        "cf_role": "mesh_topology",
        "node_coordinates": "nx ny",
        "face_node_connectivity": "faces",
        "edge_node_connectivity": "edges",
        "face_dimension": "face",
        **more,
    }
    unit = (
        {"units": "degrees_east"}
        if lon
        else {"standard_name": "projection_x_coordinate"}
    )
    arrays = {
        "mesh": ((), 0, topology),
        "nx": ("node", np.where(X + lon > 360, X + lon - 360, X + lon), unit),
        "ny": ("node", Y, {"standard_name": "projection_y_coordinate"}),
        "faces": (dims, faces, about),
        "edges": (
            ("edge", "two"),
            np.array(EDGES, "i4") + start,
            {"start_index": start},
        ),
    }
    for place in places:
        values = RNG.random((4, {"node": 6, "face": 3, "edge": 3}[place]))
        at = {"mesh": "mesh", "location": place}
        arrays[f"u_{place}"] = ("time", place), values, at
    if "face_coordinates" in more:
        arrays |= {"fx": ("face", [0.1, 0.2, 0.3]), "fy": ("face", [0.4, 0.5, 0.6])}
    xarray.Dataset(arrays, {"time": np.arange(4.0)}).to_netcdf(path)
    return path


def centres(shapes):
    return [[np.mean([v[k] for k in s if k >= 0]) for v in (X, Y)] for s in shapes]


@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("place", "shapes"), [("face", FACES), ("edge", EDGES)])
def test_values_are_at_the_mean_of_nodes(place, shapes, start, transposed, tmp_path):
    path = mesh(tmp_path / "a.nc", [place], start, transposed=transposed)
    fields = nfsgeo.open(path)
    np.testing.assert_allclose(fields.coordinates(0), centres(shapes))
    stored = xarray.open_dataset(path)[f"u_{place}"].values
    np.testing.assert_array_equal(fields.read(0, slice(None))[..., 0], stored.T)


def test_coordinates_that_the_mesh_names_are_taken(tmp_path):
    path = mesh(tmp_path / "a.nc", ["face"], face_coordinates="fx fy")
    expected = np.transpose([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    np.testing.assert_array_equal(nfsgeo.open(path).coordinates(0), expected)


def test_faces_on_both_sides_of_a_meridian(tmp_path):
    fields = nfsgeo.open(mesh(tmp_path / "a.nc", ["face"], lon=359.5))
    at = fields.coordinates(0) % 360
    np.testing.assert_allclose(at[:, 0], (np.array(centres(FACES))[:, 0] + 359.5) % 360)


def changed(path, change):
    """The file with other attributes or values, made by ``change`` of its data set."""
    with xarray.open_dataset(path, decode_cf=False) as stored:
        dataset = stored.load()
    dataset = change(dataset) or dataset
    dataset.to_netcdf(path)
    return path


@pytest.mark.parametrize("lacks", [["location"], ["location", "mesh"]])
@pytest.mark.parametrize("place", ["node", "face", "edge"])
def test_the_dimension_tells_the_place_where_no_attribute_does(place, lacks, tmp_path):
    path = mesh(tmp_path / "a.nc", [place])
    expected = nfsgeo.open(path).coordinates(0)

    def without(dataset):
        for key in lacks:
            del dataset[f"u_{place}"].attrs[key]

    fields = nfsgeo.open(changed(path, without))
    assert fields.component_names == [f"u_{place}"]
    np.testing.assert_array_equal(fields.coordinates(0), expected)


@pytest.mark.parametrize("said", ["node", "edge", "volume", ""])
def test_places_that_contradict_the_dimension_are_refused(said, tmp_path, one_line):
    path = mesh(tmp_path / "a.nc", ["face"])

    def relocated(dataset):
        other = dataset["u_face"].assign_attrs(location=said)
        if not said:  # neither does the dimension tell it
            del other.attrs["location"]
            other = other.rename(face="other")
        return dataset.assign(u=other)

    text = one_line(nfsgeo.open, changed(path, relocated))
    assert "u along" in text and "ignore=u" in text and "location face" in text
    fields = nfsgeo.open(path, columns={"ignore": "u"})
    assert fields.component_names == ["u_face"]


def test_other_numbers_of_values_than_places_are_refused(tmp_path, one_line):
    def longer(dataset):
        values = np.ones((4, 5)), {"mesh": "mesh", "location": "face"}
        return dataset.assign(u=(("time", "five"), *values))

    path = changed(mesh(tmp_path / "a.nc", ["face"]), longer)
    assert "five 5" in one_line(nfsgeo.open, path)
    assert nfsgeo.open(path, columns={"field": "u_face"}).num_points(0) == 3


def test_fields_on_several_places_are_asked_about(tmp_path, one_line):
    path = mesh(tmp_path / "a.nc", ["node", "face", "edge"])
    assert "field=u_node, or field=u_face" in one_line(nfsgeo.open, path)
    for place, num in (("node", 6), ("face", 3), ("edge", 3)):
        fields = nfsgeo.open(path, columns={"field": f"u_{place}"})
        assert fields.component_names == [f"u_{place}"] and fields.num_points(0) == num


@pytest.mark.parametrize("place", ["face", "edge"])
@pytest.mark.parametrize(("stored", "said"), [(0, 1), (1, 0), (1, None), (0, 4)])
def test_numbers_of_nodes_that_contradict_their_start(
    place, stored, said, tmp_path, one_line
):
    def restarted(dataset):
        about = dataset[f"{place}s"].attrs
        about |= {"start_index": said}
        if said is None:
            del about["start_index"]

    path = mesh(tmp_path / "a.nc", [place], stored)
    expected = nfsgeo.open(path).coordinates(0)
    text = one_line(nfsgeo.open, changed(path, restarted))
    assert f"start_index {said or 0} of {place}s" in text
    assert f"nodes {stored} to {5 + stored}" in text
    assert f'["start_index"] = {stored}' in text
    with xarray.open_dataset(path, decode_cf=False) as dataset:
        dataset[f"{place}s"].attrs["start_index"] = stored
        fields = nfsgeo.from_xarray(dataset)
        np.testing.assert_array_equal(fields.coordinates(0), expected)


@pytest.mark.parametrize("fill", [0, -1])
def test_rows_of_fewer_nodes_are_filled_without_an_attribute(fill, tmp_path):
    def filled(dataset):
        values = dataset["faces"].values
        del dataset["faces"].attrs["_FillValue"]
        dataset["faces"].values[...] = np.where(values < 0, fill, values)

    path = mesh(tmp_path / "a.nc", ["face"], 1)
    fields = nfsgeo.open(changed(path, filled))
    np.testing.assert_allclose(fields.coordinates(0), centres(FACES))


def test_zeros_that_may_be_nodes_or_fill_rows_are_asked_about(tmp_path, one_line):
    def filled(dataset):
        values = np.where(dataset["faces"].values < 0, 0, dataset["faces"].values)
        del dataset["faces"].attrs["_FillValue"]
        dataset["faces"].values[...] = np.where(values == 6, 3, values)

    path = changed(mesh(tmp_path / "a.nc", ["face"], 1), filled)
    text = one_line(nfsgeo.open, path)
    assert '["start_index"] = 0' in text and '["_FillValue"] = 0' in text
    with xarray.open_dataset(path, decode_cf=False) as dataset:
        dataset["faces"].attrs["_FillValue"] = 0
        shapes = [[2 if k == 5 else k for k in face] for face in FACES]
        found = nfsgeo.from_xarray(dataset).coordinates(0)
        np.testing.assert_allclose(found, centres(shapes))


def test_nodes_that_do_not_exist_are_refused(tmp_path, one_line):
    def beyond(dataset):
        dataset["faces"].values[0, 0] = 999999

    path = changed(mesh(tmp_path / "a.nc", ["face"]), beyond)
    text = one_line(nfsgeo.open, path)
    assert "to 999999" in text and "nodes 0 to 5" in text and "correct the num" in text
