"""What loadtest/webhook-latency.py makes of events that do not come."""

import importlib.util
import math
import pathlib
import unittest

place = pathlib.Path(__file__).parents[2] / "loadtest" / "webhook-latency.py"
latency = importlib.util.module_from_spec(importlib.util.spec_from_file_location("latency", place))
latency.__spec__.loader.exec_module(latency)


class MissingEvents(unittest.TestCase):
    def p99(self, came, due):
        times = latency.in_order([0.001] * came, due)
        return times[int(len(times) * 0.99)]

    def test_events_that_never_come_are_the_slowest(self):
        self.assertEqual(self.p99(1000, 1000), 0.001)
        self.assertEqual(self.p99(990, 1000), 0.001, "the last ones may be under way")
        self.assertEqual(self.p99(955, 1000), math.inf)
        self.assertEqual(self.p99(0, 1000), math.inf)


if __name__ == "__main__":
    unittest.main()
