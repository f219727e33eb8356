"""Simulated drives with known truth, and what phones make of them: seeded, for gps-score.py. Needs numpy.

A way is made of stretches of constant acceleration and turn. A phone's errors have a part that drifts over `drift_seconds`
(satellites, the atmosphere) and a white one; its speed and bearing are exact to `velocity` and `late` seconds old. The
columns are those of a recorded trace.
"""
import numpy

METERS = 111_195.0
LATITUDE, LONGITUDE = 48.137, 11.575


def way(speed, stretches, heading=40.0):
    """Rows of east, north, speed and heading for each tenth of a second; a stretch is (seconds, m/s², degrees a second)."""
    east, north, rows = 0.0, 0.0, []
    for seconds, acceleration, turn in stretches:
        for _ in range(int(seconds * 10)):
            rows.append((east, north, speed, heading % 360))
            after = max(0.0, speed + acceleration / 10)
            heading += turn / 10 if speed > 1 else 0
            east += (speed + after) / 20 * numpy.sin(numpy.radians(heading))
            north += (speed + after) / 20 * numpy.cos(numpy.radians(heading))
            speed = after
    return numpy.array(rows)


def town(seed, seconds=1500):
    """Stretches of driving with junctions, bends and stops."""
    random, stretches, speed = numpy.random.default_rng(seed), [], 0.0
    while sum(s[0] for s in stretches) < seconds:
        target = float(random.choice([0, 5, 9, 14, 14, 22]))
        acceleration = 1.8 if target > speed else -2.5
        took = round(abs(target - speed) / abs(acceleration), 1)
        stretches.append((took, acceleration, 0))
        speed = target
        if 0 < speed < 12 and random.random() < 0.6:
            stretches.append((10, 0, 9 * random.choice([-1, 1])))
        stretches.append((float(random.integers(6, 25)), 0, 0.5 * random.choice([-1, 0, 1]) if speed > 12 else 0))
    return way(0.0, stretches)


def phone(way, seed, every=1.0, drift=1.0, drift_seconds=90.0, white=0.3, velocity=0.1, late=0.0, stated=4.0, motion=True,
          wild=0.0, outliers=0.0, gaps=0.0):
    """What a phone says of a way, as the columns of a trace."""
    random = numpy.random.default_rng(seed)
    index = numpy.arange(0, len(way), int(every * 10))
    kept, slow, errors = numpy.exp(-every / drift_seconds), random.standard_normal(2) * drift, []
    for _ in index:
        slow = slow * kept + random.standard_normal(2) * drift * numpy.sqrt(1 - kept * kept)
        errors.append(slow + random.standard_normal(2) * white)
    place = way[index, :2] + numpy.array(errors)
    far = random.random(len(index)) < outliers
    place[far] += random.standard_normal((far.sum(), 2)) * 400
    old = way[numpy.maximum(0, index - int(late * 10))]
    course = numpy.radians(old[:, 3])
    moved = numpy.stack([numpy.sin(course), numpy.cos(course)], 1) * old[:, 2:3]
    moved += random.standard_normal(moved.shape) * velocity
    is_wild = random.random(len(index)) < wild
    moved[is_wild] += random.standard_normal((is_wild.sum(), 2)) * 6
    speed = numpy.hypot(*moved.T)
    bearing = numpy.where(speed > 0.5, numpy.degrees(numpy.arctan2(*moved.T)) % 360, numpy.nan)
    unknown = numpy.full(len(index), numpy.nan)
    rows = dict(
        t_ms=1_700_000_000_000 + index * 100, lat=latitude(place), lon=longitude(place),
        accuracy_m=numpy.full(len(index), numpy.nan if stated is None else stated),
        speed_mps=speed if motion else unknown, bearing_deg=bearing if motion else unknown,
        truth_lat=latitude(way[index]), truth_lon=longitude(way[index]), truth_speed_mps=way[index, 2],
        truth_bearing_deg=way[index, 3])
    keep, missing = numpy.ones(len(index), bool), 0
    for number in range(len(index)):
        if missing == 0 and random.random() < gaps:
            missing = int(random.integers(3, 15))
        keep[number], missing = missing == 0, max(0, missing - 1)
    return {k: v[keep].astype(float) for k, v in rows.items()}


def scatter(rows, seed, seconds, sigma):
    """Places that are off by `sigma` on an axis for a range of seconds, as in a tunnel."""
    random = numpy.random.default_rng(seed)
    off = random.standard_normal((len(seconds), 2)) * sigma
    rows['lat'][seconds] = rows['truth_lat'][seconds] + off[:, 1] / METERS
    rows['lon'][seconds] = rows['truth_lon'][seconds] + off[:, 0] / METERS / numpy.cos(numpy.radians(LATITUDE))
    return rows


def latitude(place):
    return LATITUDE + place[:, 1] / METERS


def longitude(place):
    return LONGITUDE + place[:, 0] / METERS / numpy.cos(numpy.radians(LATITUDE))


BEND = [(30, 0, 0), (120, 0, numpy.degrees(30 / 300))]
BRAKING = [(30, 0, 0), (25, -6, 0)]
PHONES = {
    'good': {}, 'half a second late': dict(late=0.5), 'fair': dict(drift=2, white=2, stated=4.3),
    'no accuracy': dict(drift=1.5, white=2, velocity=0.25, stated=None),
    'late and noisy': dict(white=1, velocity=0.3, late=0.6),
    'overrates itself': dict(drift=2, drift_seconds=60, white=0.7, stated=0.8),
    'drifts in 30 s': dict(drift=3, drift_seconds=30, white=0.5, stated=6), 'states 20 m': dict(white=0.5, stated=20),
    'wild velocities': dict(drift=1.5, white=1, velocity=0.2, stated=5, wild=0.03),
}
