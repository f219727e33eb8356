"""A map's images out of a file that PMTiles' own package has written."""

import pathlib
import tempfile
import unittest
import urllib.request

from hub_process import HubProcess
from pmtiles.tile import Compression, TileType, zxy_to_tileid
from pmtiles.writer import Writer

ZOOMS = 8  # so many that the first directory has leaves


def tiles():
    return ((zoom, x, y) for zoom in range(ZOOMS) for x in range(1 << zoom) for y in range(1 << zoom)
            if (x * 7 + y * 3 + zoom) % 4 != 1)


def image(zoom, x, y):
    """What no image is, of lengths of its own; many are the same as others."""
    return b"sea" if x % 5 == 0 else f"{zoom}/{x}/{y}".encode() * (1 + (x * y) % 7)


class Tiles(unittest.TestCase):
    def test_each_image_comes_as_it_was_written(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "map.pmtiles"
            with path.open("wb") as file:
                writer = Writer(file)
                for tile in sorted(tiles(), key=lambda tile: zxy_to_tileid(*tile)):
                    writer.write_tile(zxy_to_tileid(*tile), image(*tile))
                header = {
                    "tile_type": TileType.PNG, "tile_compression": Compression.NONE, "min_zoom": 0,
                    "max_zoom": ZOOMS - 1, "min_lon_e7": -86_500_000, "min_lat_e7": 410_000_000,
                    "max_lon_e7": -85_000_000, "max_lat_e7": 412_000_000, "center_zoom": 5, "center_lon_e7": 0,
                    "center_lat_e7": 0}
                writer.finalize(header, {"attribution": '<a href="https://osm.org">&copy; OSM</a>'})
            hub = HubProcess("--tiles", str(path), journal=False)
            self.addCleanup(hub.stop)

            def get(target):
                with urllib.request.urlopen(hub.url(target), timeout=20) as answer:
                    return answer.status, answer.headers.get("Content-Type"), answer.read()

            about = get("/v1/about")[2].decode()
            self.assertIn('"tiles":"/tiles/{z}/{x}/{y}","attribution":"© OSM","zooms":[0,7]', about)
            self.assertIn('"box":[-8.65,41,-8.5,41.2]', about)
            there = set(tiles())
            for zoom in range(ZOOMS):
                for number in range(0, 1 << (2 * zoom), 1 + (1 << zoom) // 9):
                    x, y = number >> zoom, number & (1 << zoom) - 1
                    expected = (200, "image/png", image(zoom, x, y)) if (zoom, x, y) in there else (204, None, b"")
                    self.assertEqual(get(f"/tiles/{zoom}/{x}/{y}"), expected)
            self.assertEqual(get(f"/tiles/{ZOOMS}/0/0")[0], 204)
