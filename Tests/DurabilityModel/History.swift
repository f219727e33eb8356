// One history from its seed, and what is needed to see one again that went wrong.

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

/// What happened, written down only where somebody will read it: text costs more than the events.
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
