// One history from its seed, and what is needed to see one again that went wrong.

/// What a run of histories came across: a check that never meets what it checks for proves nothing.
public struct HistoryReach: Sendable, Equatable {
  public var events = 0, fenceEvents = 0, positions = 0, acks = 0, groups = 0
  public var kills = 0, powerCuts = 0, starts = 0, cuts = 0
  public var recovered = 0, notRecovered = 0, repeated = 0, duplicates = 0, postponed = 0
  public var full = 0, refusedWhenFull = 0, gone = 0, stopped = 0, spoiled = 0, losses = 0, lookups = 0, snapshots = 0
  public var places = 0, absences = 0

  public init() {}

  /// By name, in a fixed order.
  public var counts: [(name: String, count: Int)] {
    [
      ("events heard", events), ("of fences", fenceEvents),
      ("positions heard", positions), ("acks", acks), ("groups stored", groups),
      ("kills", kills), ("power cuts", powerCuts), ("starts", starts), ("cut connections", cuts),
      ("recovered", recovered), ("not recovered", notRecovered), ("moves repeated", repeated),
      ("duplicate fixes", duplicates), ("postponed", postponed), ("disk full", full),
      ("turns that refused for it", refusedWhenFull), ("directory gone", gone),
      ("journal stopped", stopped),
      ("files spoiled", spoiled), ("losses accepted", losses), ("journal asked", lookups),
      ("snapshots", snapshots), ("places after a start", places), ("drivers offline", absences),
    ]
  }

  public static func += (sum: inout HistoryReach, more: HistoryReach) {
    sum.events += more.events
    sum.fenceEvents += more.fenceEvents
    sum.positions += more.positions
    sum.acks += more.acks
    sum.groups += more.groups
    sum.kills += more.kills
    sum.powerCuts += more.powerCuts
    sum.starts += more.starts
    sum.cuts += more.cuts
    sum.recovered += more.recovered
    sum.notRecovered += more.notRecovered
    sum.repeated += more.repeated
    sum.duplicates += more.duplicates
    sum.postponed += more.postponed
    sum.full += more.full
    sum.refusedWhenFull += more.refusedWhenFull
    sum.gone += more.gone
    sum.stopped += more.stopped
    sum.spoiled += more.spoiled
    sum.losses += more.losses
    sum.lookups += more.lookups
    sum.places += more.places
    sum.absences += more.absences
    sum.snapshots += more.snapshots
  }
}

/// A history that broke a promise.
public struct HistoryFailure: Error, CustomStringConvertible {
  public var seed: UInt64
  /// Steps after which it shows.
  public var steps: Int
  public var text: String
  /// The last things that happened.
  public var tail: [String]

  public var description: String {
    """
    HISTORY_SEED=\(seed), after \(steps) steps: \(text)
    \(tail.map { "    " + $0 }.joined(separator: "\n"))
    """
  }
}

/// What happened, written down only where somebody will read it: words cost more than what they tell of.
struct Diary {
  let isKept: Bool
  private(set) var lines: [String] = []
  var step = 0

  init(isKept: Bool) { self.isKept = isKept }

  mutating func note(_ text: @autoclosure () -> String, _ numbers: Int...) {
    if isKept { lines.append("\(step): \(text()) \(numbers.map { "\($0)" }.joined(separator: " "))") }
  }
}

public enum History {
  /// Runs the history of a seed; the failure is the shortest that this seed has.
  public static func run(seed: UInt64, steps: Int? = nil) throws(HistoryFailure) -> HistoryReach {
    let steps = steps ?? length(of: seed)
    do throws(HistoryFailure) { return try run(seed, steps, isKept: false) } catch {
      let failure = error
      for fewer in 0..<failure.steps {
        do throws(HistoryFailure) { _ = try run(seed, fewer, isKept: false) } catch {
          throw again(seed, fewer, error)
        }
      }
      throw again(seed, steps, failure)
    }
  }

  /// Steps of a seed's history: many are short.
  static func length(of seed: UInt64) -> Int { [40, 70, 110, 160][Int(seed / 5 % 4)] }

  private static func again(_ seed: UInt64, _ steps: Int, _ failure: HistoryFailure) -> HistoryFailure {
    do throws(HistoryFailure) { _ = try run(seed, steps, isKept: true) } catch { return error }
    return failure
  }

  private static func run(_ seed: UInt64, _ steps: Int, isKept: Bool) throws(HistoryFailure) -> HistoryReach {
    var world = World(seed: seed, diary: Diary(isKept: isKept))
    do throws(Violation) {
      try world.start()
      while world.diary.step < steps {
        world.diary.step += 1
        try world.step()
      }
      try world.quiet()
    } catch {
      throw HistoryFailure(
        seed: seed, steps: world.diary.step, text: error.text, tail: Array(world.diary.lines.suffix(60)))
    }
    return world.reach
  }
}
