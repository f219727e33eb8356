// The drivers around a place, as they move.
import HubBytes
import HubClientCore
public import HubGeo
import HubMessages
import Synchronization

/// A map that follows the drivers around a place.
///
/// Each element is the map as it is; a loop that is slow gets the newest. The hub is asked while somebody reads.
public final class AreaFeed: AsyncSequence, Sendable {
  public typealias Element = AreaMap
  public typealias Failure = Never

  private let runner: ClientLife
  private let view: InlineText
  private let channel: Mutex<Channel>

  init(_ runner: ClientLife, number: UInt64, around center: Coordinate, radius: Double) {
    self.runner = runner
    guard let view = InlineText("a\(number)") else { preconditionFailure("21 bytes at most") }
    self.view = view
    channel = Mutex(.nearby(center, radiusMeters: radius))
  }

  /// Shows another part of the map, to all readers. The hub is asked at most as often as its rate allows, for where the
  /// map is then.
  public func move(to center: Coordinate, radius: Double) {
    let moved = Channel.nearby(center, radiusMeters: radius)
    channel.withLock { $0 = moved }
    let view = view
    runner.submit { engine, _ in engine.feeds.move(view, to: moved) }
  }

  public func makeAsyncIterator() -> Iterator {
    let (view, channel) = (view, channel.withLock { $0 })
    return Iterator(
      lease: runner.read {
        $0.feeds.add($1, to: view, showing: channel)
      } removing: { engine, key in
        engine.feeds.remove(key, from: view, engine.session)
      })
  }

  public struct Iterator: AsyncIteratorProtocol {
    let lease: FeedLease<AreaMap>

    /// The next map; nil when the hub has refused it or the client was stopped, and as soon as the task is cancelled.
    public mutating func next() async -> AreaMap? { await lease.reader.next() }
    public mutating func next(isolation actor: isolated (any Actor)?) async -> AreaMap? {
      await lease.reader.next(isolation: actor)
    }
  }
}
