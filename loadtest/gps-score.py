#!/usr/bin/env python3
"""How good `locationhub filter` is on recorded drives with known truth, beside what it must reach.

    loadtest/gps-score.py [LOCATIONHUB] [SHARED]        make gps-score

SHARED (by default ../shared beside the repository) has data/traces and tools/gpseval, which are other people's and not
part of this repository; without them, or without numpy, nothing is judged and the exit code is 0. It is 1 where a
threshold is missed, which is printed as MISSED; protocol/tracking.md says what is known of it. A target is better than
its threshold, and missing it changes nothing.

Ratios are to the raw fixes of the same drive. Drives by their names: phone_* are good phones, spp_* the bad one; all
count for the share inside the stated radius. Faults (outliers and gaps) are added with fresh seeds. Simulated drives
are those of gps_drives.py.
"""
import csv, math, os, subprocess, sys, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HUB = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, '.build/release/locationhub')
SHARED = sys.argv[2] if len(sys.argv) > 2 else os.path.join(ROOT, '..', 'shared')
TRACES = os.path.join(SHARED, 'data', 'traces')
GPSEVAL = os.path.join(SHARED, 'tools', 'gpseval')
SEEDS = range(101, 106)


def skip(why):
    print(f'skipped: {why}')
    sys.exit(0)


for folder in (TRACES, GPSEVAL):
    if not os.path.isdir(folder):
        skip(f'{folder} is not there')
try:
    import numpy
except ImportError:
    skip('Python has no numpy (pip install numpy)')
sys.path.insert(0, GPSEVAL)
sys.dont_write_bytecode = True
import gpseval, gpsmath
import gps_drives as drives


def filtered(trace, *options):
    """The rows that `locationhub filter` prints, as arrays."""
    with tempfile.NamedTemporaryFile('w+', suffix='.csv') as file:
        subprocess.run([HUB, 'filter', '--accuracy', trace, *options], stdout=file, check=True)
        return gpsmath.read_trace(file.name)


def errors(truth, estimate):
    east, north = gpsmath.seg_enu(truth['truth_lat'], truth['truth_lon'], estimate['lat'], estimate['lon'])
    return numpy.hypot(east, north)


def shown(trace, *options):
    """Errors of what a map shows at the time of each fix of the trace."""
    truth = gpsmath.read_trace(trace)
    estimate, _ = gpseval.align(truth, filtered(trace, *options))
    return errors(truth, estimate)


def inside(trace):
    """The share of the truth that lies within the published radius."""
    truth, rows = gpsmath.read_trace(trace), filtered(trace)
    _, first, second = numpy.intersect1d(truth['t_ms'], rows['t_ms'], return_indices=True)
    off = errors({k: v[first] for k, v in truth.items()}, {k: v[second] for k, v in rows.items()})
    return float((off <= rows['accuracy_m'][second]).mean())


def with_faults(trace, clean_mean, every, outliers):
    """Mean error with seeded faults, relative to the clean raw drive: the worst of the seeds."""
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in SEEDS:
            faulty = os.path.join(folder, f'{seed}.csv')
            subprocess.run(
                [sys.executable, os.path.join(GPSEVAL, 'gpseval.py'), 'corrupt', trace, faulty, '--seed', str(seed),
                 '--every', str(every), '--outliers', str(outliers), '--gap', '0.01'],
                stdout=subprocess.DEVNULL, check=True)
            ratios.append(float(numpy.nanmean(shown(faulty))) / clean_mean)
    return max(ratios)


WRONG = {
    'bearing 0': lambda speed, bearing, random: (speed, 0 * bearing),
    'bearing 15 degrees off': lambda speed, bearing, random: (speed, (bearing + 15) % 360),
    'km/h for m/s': lambda speed, bearing, random: (speed * 3.6, bearing),
    'bearing with 10 degrees of noise':
        lambda speed, bearing, random: (speed, (bearing + 10 * random.standard_normal(len(bearing))) % 360),
}


def changed(trace, change, part=slice(None)):
    """Mean error to that of the raw places, of a trace whose columns `change` has altered (a dict of arrays)."""
    rows = {k: v[part].copy() for k, v in gpsmath.read_trace(trace).items()}
    change(rows)
    return float(numpy.nanmean(simulated(rows)) / numpy.nanmean(errors(rows, rows)))


def simulated(rows):
    """Errors of what a map shows of a trace that is given as columns."""
    names = list(rows)
    with tempfile.NamedTemporaryFile('w', suffix='.csv') as file:
        file.write(','.join(names) + '\n')
        for values in zip(*rows.values()):
            file.write(','.join('' if numpy.isnan(v) else f'{v:.0f}' if n == 't_ms' else f'{v:.8f}'
                                for n, v in zip(names, values)) + '\n')
        file.flush()
        return shown(file.name)


def ratio_of(rows):
    return float(numpy.nanmean(simulated(rows)) / numpy.nanmean(errors(rows, rows)))


def simulated_phones(motion):
    return [ratio_of(drives.phone(drives.town(s), s + 20, motion=motion, **errors))
            for errors in drives.PHONES.values() for s in SEEDS]


def simulated_faults(every, outliers):
    ratios = []
    for seed in SEEDS:
        clean = drives.phone(drives.town(seed, 2400), seed, every)
        faulty = drives.phone(drives.town(seed, 2400), seed, every, outliers=outliers, gaps=0.01)
        ratios.append(float(numpy.nanmean(simulated(faulty)) / numpy.nanmean(errors(clean, clean))))
    return ratios


def named_drives():
    """Rows for the drives on which a filter leaves the road, each the worst of the seeds."""
    bend, stop = drives.way(30.0, drives.BEND), drives.way(30.0, drives.BRAKING)
    road, line = drives.way(22.0, [(140, 0, 0)]), drives.way(83.0, [(150, 0, 0)])
    whites = (0.3, 1, 3)
    late = [[ratio_of(drives.phone(bend, s, late=0.5, white=w)) for s in SEEDS] for w in whites]
    bare = [[ratio_of(drives.phone(bend, s, white=w, motion=False)) for s in SEEDS] for w in whites]
    mean = lambda ratios: max(sum(of_seeds) / len(of_seeds) for of_seeds in ratios)
    braked = lambda **e: max(float(numpy.max(simulated(drives.phone(stop, s, **e))[28:])) for s in SEEDS)
    tunnel = lambda sigma, motion: max(
        float(simulated(drives.scatter(drives.phone(road, s, motion=motion), s, numpy.arange(60, 100), sigma))[99])
        for s in range(SEEDS[0], SEEDS[0] + 12))
    return [
        ('r = 300 m at 30 m/s, places only: mean', mean(bare), 1.0, 0.98),
        ('the same: worst seed', max(map(max, bare)), 1.0, 0.98),
        ('the same with a velocity 0.5 s late: mean', mean(late), 1.0, 0.98),
        ('the same: worst seed', max(map(max, late)), 1.0, 0.98),
        ('braking 6 m/s², m', braked(late=0.3), 4, 3),
        ('the same by places only', braked(motion=False), 4, 3),
        ('the same, stating 0.8 m', braked(motion=False, stated=0.8), 4, 3),
        ('train 83 m/s each 5 s, m after 2 fixes',
         max(float(numpy.max(simulated(drives.phone(line, s, 5, motion=False))[2:])) for s in SEEDS), 10, 5),
        *((f'tunnel 40 s, {n} scattered by {g} m: end, m', tunnel(g, m), 60, 30)
          for m, n in ((True, 'speed,'), (False, 'no speed,')) for g in (50, 200)),
    ]


def places_only(rows):
    rows['speed_mps'][:] = numpy.nan
    rows['bearing_deg'][:] = numpy.nan


def wrong_velocity(kind):
    def change(rows):
        random = numpy.random.default_rng(SEEDS[0])
        rows['speed_mps'], rows['bearing_deg'] = WRONG[kind](rows['speed_mps'], rows['bearing_deg'], random)
    return change


def stale(seed):
    def change(rows):
        late = 1 + numpy.flatnonzero(numpy.random.default_rng(seed).random(len(rows['t_ms']) - 1) < 0.02)
        for column in ('lat', 'lon'):
            rows[column][late] = rows[column][late - 1]
    return change


def score(trace):
    truth = gpsmath.read_trace(trace)
    raw = gpseval.evaluate(
        truth, dict(lat=truth['lat'], lon=truth['lon'], speed=truth['speed_mps'], bearing=truth['bearing_deg']))
    estimate, coverage = gpseval.align(truth, filtered(trace))
    return raw, gpseval.evaluate(truth, estimate), coverage


def geometric(values):
    return math.exp(sum(math.log(v) for v in values) / len(values))


def main():
    paths = {name[:-4]: os.path.join(TRACES, name) for name in sorted(os.listdir(TRACES)) if name.endswith('.csv')}
    good = [n for n in paths if n.startswith('phone_')]
    bad = [n for n in paths if n.startswith('spp_')]
    if not good or not bad:
        skip(f'{TRACES} has no phone_* or no spp_* drive')
    scores = {n: score(p) for n, p in paths.items()}
    ratio = lambda name, key: scores[name][1][key] / scores[name][0][key]
    worst = lambda names, key: max(abs(scores[n][1][key]) for n in names)

    print('each drive, ratios to raw:         mean    p95  jitter | inside radius | fixes with a position')
    shares = {n: inside(p) for n, p in paths.items()}
    for n in paths:
        print(f'  {n:32.32s} {ratio(n, "mean"):6.3f} {ratio(n, "p95"):6.3f}  {ratio(n, "vel_jit"):6.3f} |'
              f'{100 * shares[n]:11.0f} %  |{100 * scores[n][2]:8.1f} %')

    faults = {e: geometric([with_faults(paths[n], scores[n][0]['mean'], e, o) for n in good])
              for e, o in ((1, 0.02), (4, 0.03))}
    sparse = [float(numpy.nanmean(shown(paths[n], '--every', '5', '--extrapolate', '100ms'))) for n in good]
    bare = [changed(paths[n], places_only) for n in good]
    phones, bare_phones = simulated_phones(True), simulated_phones(False)
    table = [
        ('good phones: mean error, geometric mean', geometric([ratio(n, 'mean') for n in good]), 0.99, 0.98),
        ('good phones: mean error, worst', max(ratio(n, 'mean') for n in good), 1.02, 1.00),
        ('places only: mean error, geometric mean', geometric(bare), 1.01, 0.98),
        ('places only: mean error, worst', max(bare), 1.03, 1.00),
        *((f'{kind}: worst', max(changed(paths[n], wrong_velocity(kind)) for n in good), 1.5, 1.1) for kind in WRONG),
        ('2 % of fixes a second stale: worst', max(changed(paths[n], stale(s)) for n in good for s in SEEDS), 1.05, 1.0),
        ('good phones: jitter of the drawn track', geometric([ratio(n, 'vel_jit') for n in good]), 0.80, 0.65),
        ('good phones: p95, worst', max(ratio(n, 'p95') for n in good), 1.02, 1.00),
        ('bad phone: mean error', max(ratio(n, 'mean') for n in bad), 0.38, 0.33),
        ('bad phone: p95', max(ratio(n, 'p95') for n in bad), 0.32, 0.24),
        ('bad phone: trip length error, %', worst(bad, 'dist_err_pct'), 5, 3),
        ('outliers and gaps, each 1 s, worst seed', faults[1], 1.03, 1.00),
        ('outliers and gaps, each 4 s, worst seed', faults[4], 1.22, 1.10),
        ('lag along the track, good phones, s', worst(good, 'lag_s'), 0.08, 0.04),
        ('lag along the track, bad phone, s', worst(bad, 'lag_s'), 0.20, 0.10),
        ('shown position, fixes every 5 s, m', sum(sparse) / len(sparse), 2.0, 1.9),
        ('speed RMSE, good phones, m/s', worst(good, 'speed_rmse'), 0.30, 0.20),
        ('heading RMSE, bad phone, degrees', worst(bad, 'head_rmse'), 4, 3.5),
        ('phantom metres a parked minute, bad phone', worst(bad, 'phantom_m_per_min'), 36, 20),
        ('simulated phones: mean error, geometric mean', geometric(phones), 0.99, 0.98),
        ('simulated phones: mean error, worst drive', max(phones), 1.02, 1.00),
        ('simulated, places only: geometric mean', geometric(bare_phones), 1.01, 0.98),
        ('simulated, places only: worst drive', max(bare_phones), 1.03, 1.00),
        ('simulated faults, each 1 s, worst seed', max(simulated_faults(1.0, 0.02)), 1.03, 1.00),
        ('simulated faults, each 4 s, worst seed', max(simulated_faults(4.0, 0.03)), 1.22, 1.10),
        *named_drives(),
    ]
    print(f'\n{"case":44s}{"value":>8s}{"threshold":>11s}{"target":>8s}')
    missed = 0
    for name, value, threshold, target in table:
        missed += value > threshold
        verdict = 'MISSED' if value > threshold else 'target met' if value <= target else 'met'
        print(f'{name:44s}{value:8.3f}{threshold:11.2f}{target:8.2f}  {verdict}')
    median = float(numpy.median(list(shares.values())))
    for name, value, is_met, threshold in (
            ('inside the stated radius, median of drives', median, 0.65 <= median <= 0.75, '.65–.75'),
            ('inside the stated radius, least of drives', min(shares.values()), min(shares.values()) >= 0.65, '≥ .65')):
        missed += not is_met
        print(f'{name:44s}{value:8.3f}{threshold:>11s}          {"met" if is_met else "MISSED"}')
    print('cost of a fix: make microbench, track-fix')
    sys.exit(1 if missed else 0)


if __name__ == '__main__':
    main()
