from __future__ import annotations

import pytest

from moldau.core.xxh3 import xxh3_64


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (0, 3244421341483603138),
        (1, -4302098779834749733),
        (3, 6864218090047839419),
        (4, 6979084321315492338),
        (8, 4187271766389786872),
        (9, -1629980255024596516),
        (16, -8983023575487778597),
        (17, -6993173599622040792),
        (128, -8807326403944725397),
        (129, -1407864491810865574),
        (240, 3988562325861820517),
        (241, 209643423615708418),
        (1025, 8703327852945446994),
        (5000, 1978414643163073658),
    ],
)
def test_the_reference_implementation_gives_the_same(size: int, expected: int) -> None:
    assert xxh3_64(bytes(index & 255 for index in range(size))) == expected
