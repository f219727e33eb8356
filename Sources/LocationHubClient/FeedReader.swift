// Between the engine's thread, which appends events, and one `for await` loop, which reads them.
//
// A state (position, ETA, map) replaces an unread one of its kind; events wait in order, up to a limit. The order is
// kept, so that a loop that keeps up sees everything as it happened.
import Synchronization

/// One reader's events. `slot` names the kind of a state; nil is an event that must not be missed.
final class FeedReader<Event: Sendable>: Sendable {
  private struct State {
    var waiting: [(slot: UInt8?, event: Event)] = []
    var events = 0
    var continuation: CheckedContinuation<Event?, Never>?
    var isFinished = false
    var failure: HubError?
  }

  private let state = Mutex(State())

  /// Appends an event. False at the limit: then all were dropped, and the reader has to be notified.
  @discardableResult
  func push(_ event: Event, slot: UInt8? = nil) -> Bool {
    let (continuation, fits): (CheckedContinuation<Event?, Never>?, Bool) = state.withLock { state in
      guard !state.isFinished else { return (nil, true) }
      if let continuation = state.continuation {
        state.continuation = nil
        return (continuation, true)
      }
      if let slot {
        state.waiting.removeAll { $0.slot == slot }
      } else if state.events >= FeedReader.maximumEvents {
        state.waiting = []
        state.events = 0
        return (nil, false)
      } else {
        state.events += 1
      }
      state.waiting.append((slot, event))
      return (nil, true)
    }
    continuation?.resume(returning: event)
    return fits
  }

  /// Drops the unread state of this kind; a newer one follows at once.
  func withdraw(slot: UInt8) { state.withLock { $0.waiting.removeAll { $0.slot == slot } } }

  /// Why the sequence has ended; nil while it has not, and where its reader has left.
  var failure: HubError? { state.withLock { $0.failure } }

  /// Ends the sequence behind the unread events.
  func finish(_ failure: HubError? = nil) {
    let continuation = state.withLock { state in
      if !state.isFinished { state.failure = failure }
      state.isFinished = true
      defer { state.continuation = nil }
      return state.continuation
    }
    continuation?.resume(returning: nil)
  }

  /// The reader has left: drops unread events.
  func cancel() {
    state.withLock { state in
      state.waiting = []
      state.events = 0
    }
    finish()
  }

  /// The next event; nil at the end, and as soon as the reader's task is cancelled. An actor's loop waits on its actor,
  /// and wakes no other thread to wait there. (Swift resumes it through its pool all the same.)
  func next(isolation actor: isolated (any Actor)? = #isolation) async -> Event? {
    await withTaskCancellationHandler {
      await withCheckedContinuation(isolation: actor) { continuation in
        let answer: Event?? = state.withLock { state in
          if !state.waiting.isEmpty {
            let first = state.waiting.removeFirst()
            if first.slot == nil { state.events -= 1 }
            return .some(first.event)
          }
          if state.isFinished { return .some(nil) }
          precondition(state.continuation == nil, "one iterator is read by one task")
          state.continuation = continuation
          return nil
        }
        if let answer { continuation.resume(returning: answer) }
      }
    } onCancel: {
      cancel()
    }
  }
}

/// Keeps a reader while its iterator lives, and then reports its end.
final class FeedLease<Event: Sendable>: Sendable {
  let reader: FeedReader<Event>
  private let end: @Sendable () -> Void

  init(_ reader: FeedReader<Event>, end: @Sendable @escaping () -> Void) {
    self.reader = reader
    self.end = end
  }

  deinit {
    reader.cancel()
    end()
  }
}
