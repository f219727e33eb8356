#!/usr/bin/env python3
"""How good `locationhub filter` is on recorded drives with known truth, beside what it must reach.

    loadtest/gps-score.py [LOCATIONHUB] [SHARED]        make gps-score

SHARED (by default ../shared beside the repository) has data/traces and tools/gpseval, which are other people's and not part
of this repository; without them, or without numpy, nothing is judged and the exit code is 0. It is 1 where a bar is missed.
Ratios are to the raw fixes of the same drive. Drives by their names: phone_* are good phones, spp_* the bad one; all count
for the share inside the stated radius. Faults (outliers and gaps) are added with fresh seeds.
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
import gpseval, gpsmath


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
    names = list(rows)
    with tempfile.NamedTemporaryFile('w', suffix='.csv') as file:
        file.write(','.join(names) + '\n')
        for values in zip(*rows.values()):
            file.write(','.join('' if numpy.isnan(v) else f'{v:.0f}' if n == 't_ms' else f'{v:.8f}'
                                for n, v in zip(names, values)) + '\n')
        file.flush()
        return float(numpy.nanmean(shown(file.name)) / numpy.nanmean(errors(rows, rows)))


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
        # The bad phone's own p95 is 0.35 of raw on the drive at hand; on another one 0.25.
        ('bad phone: p95', max(ratio(n, 'p95') for n in bad), 0.45, 0.36),
        ('bad phone: trip length error, %', worst(bad, 'dist_err_pct'), 5, 3),
        ('outliers and gaps, each 1 s, worst seed', faults[1], 1.03, 1.00),
        ('outliers and gaps, each 4 s, worst seed', faults[4], 1.22, 1.10),
        ('lag along the track, good phones, s', worst(good, 'lag_s'), 0.08, 0.04),
        ('lag along the track, bad phone, s', worst(bad, 'lag_s'), 0.20, 0.10),
        ('shown position, fixes every 5 s, m', sum(sparse) / len(sparse), 2.5, 2.0),
        ('speed RMSE, good phones, m/s', worst(good, 'speed_rmse'), 0.30, 0.20),
        ('heading RMSE, bad phone, degrees', worst(bad, 'head_rmse'), 4, 3.5),
        ('phantom metres a parked minute, bad phone', worst(bad, 'phantom_m_per_min'), 36, 20),
    ]
    print(f'\n{"case":44s}{"value":>8s}{"bar":>8s}{"aim":>8s}')
    missed = 0
    for name, value, bar, aim in table:
        missed += value > bar
        print(f'{name:44s}{value:8.3f}{bar:8.2f}{aim:8.2f}  {"MISSED" if value > bar else "aim" if value <= aim else "met"}')
    median = float(numpy.median(list(shares.values())))
    is_met = 0.60 <= median <= 0.90
    missed += not is_met
    print(f'{"inside the stated radius, median of drives":44s}{median:8.3f}   .6–.9  .65–.75'
          f'  {"MISSED" if not is_met else "aim" if 0.65 <= median <= 0.75 else "met"}')
    print('cost of a fix: make microbench, track-fix')
    sys.exit(1 if missed else 0)


if __name__ == '__main__':
    main()
