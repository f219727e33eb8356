// A changing value, for any number of readers: each gets the present value first, then the newest after each change.
import Synchronization

/// A sequence of a value's states. It never fails, and ends with its client.
public struct Latest<Value: Sendable & Equatable>: AsyncSequence, Sendable {
  public typealias Element = Value
  public typealias Failure = Never

  let source: LatestSource<Value>

  /// The present value.
  public var current: Value { source.current }

  /// Begins to read: the present state first, then the newest after each change. Any number of loops may read at once.
  public func makeAsyncIterator() -> Iterator { Iterator(lease: source.read()) }

  /// One reader of the states.
  public struct Iterator: AsyncIteratorProtocol {
    let lease: FeedLease<Value>

    /// The next state; nil at the end, and as soon as the task is cancelled.
    public mutating func next() async -> Value? { await lease.reader.next() }
    /// The next state, for a loop of an actor; nil at the end, and as soon as the task is cancelled.
    public mutating func next(isolation actor: isolated (any Actor)?) async -> Value? {
      await lease.reader.next(isolation: actor)
    }
  }
}

/// The source of a `Latest`.
final class LatestSource<Value: Sendable & Equatable>: Sendable {
  private struct State {
    var value: Value
    var readers: [ObjectIdentifier: FeedReader<Value>] = [:]
  }

  private let state: Mutex<State>

  init(_ value: Value) { state = Mutex(State(value: value)) }

  deinit { for reader in state.withLock({ $0.readers.values }) { reader.finish() } }

  var current: Value { state.withLock { $0.value } }

  /// Sets the value; does nothing where it is equal.
  func set(_ value: Value) {
    let readers = state.withLock { state -> [FeedReader<Value>] in
      guard state.value != value else { return [] }
      state.value = value
      return Array(state.readers.values)
    }
    for reader in readers { reader.push(value, slot: 0) }
  }

  func read() -> FeedLease<Value> {
    let reader = FeedReader<Value>()
    let key = ObjectIdentifier(reader)
    // Within the lock, so that no newer value comes first.
    state.withLock { state in
      state.readers[key] = reader
      _ = reader.push(state.value, slot: 0)
    }
    return FeedLease(reader) { [weak self] in _ = self?.state.withLock { $0.readers.removeValue(forKey: key) } }
  }
}
