"""Random streams keep their numbers: other points would be drawn otherwise."""

import numpy as np

from nfsgeo.data.streams import Stream, derived_seed, epoch_order, philox


def test_streams_are_independent_and_keep_their_numbers():
    assert [int(stream) for stream in Stream] == list(range(len(Stream)))
    first = [philox(3, stream, 5).random() for stream in Stream]
    assert len(set(first)) == len(Stream)
    assert first[Stream.CLUSTERED] == philox(3, 3, 5).random()


def test_seeds_and_orders_are_those_of_the_words():
    assert derived_seed(1, 2, 3) == np.random.SeedSequence([1, 2, 3]).generate_state(1)
    expected = np.random.default_rng([4, 7]).permutation(9)
    assert np.array_equal(epoch_order(4, 7).permutation(9), expected)
