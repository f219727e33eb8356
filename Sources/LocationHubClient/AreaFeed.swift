// The drivers around a coordinate, live.
import HubBytes
import HubClientCore
public import HubGeo
import HubMessages
import Synchronization

/// A live map of the drivers around a coordinate.
///
/// Each element is the complete map; a slow loop gets the newest. The client is subscribed while at least one loop
/// reads. A loop ends when the hub refuses the area, or the client is stopped: `failure` has the reason.
///
/// ```swift
/// let area = hub.area(around: here, radius: 800)
/// for await map in area { show(map.drivers) }
/// if let failure = area.failure { show(failure) }
/// ```
public final class AreaFeed: AsyncSequence, Sendable {
  public typealias Element = AreaMap
  public typealias Failure = Never

  private let runner: RunningClient
  private let view: InlineText
  private let channel: Mutex<Channel>
  private let end = Mutex<HubError?>(nil)

  init(_ runner: RunningClient, number: UInt64, around center: Coordinate, radius: Double) {
    self.runner = runner
    guard let view = InlineText("a\(number)") else { preconditionFailure("21 bytes at most") }
    self.view = view
    channel = Mutex(.nearby(center, radiusMeters: radius))
  }

  /// Why the last loop ended; nil where it left by itself, and while another one reads.
  ///
  /// `hub(_)` is the hub's refusal, for instance of a radius that is too large for a rider. `badValue` is an invalid
  /// radius, `stopped` the client's end, `full` too many feeds.
  public var failure: HubError? { end.withLock { $0 } }

  /// Shows another part of the map to all readers; `radius` in metres. The hub is asked at most as often as its rate
  /// allows, for the position at that time. A radius that is not above 0 ends the loops.
  public func move(to center: Coordinate, radius: Double) {
    let moved = Channel.nearby(center, radiusMeters: radius)
    channel.withLock { $0 = moved }
    let view = view
    runner.submit { engine, _ in engine.feeds.move(view, to: moved, engine.session) }
  }

  /// Begins to read, and forgets `failure`. The first loop subscribes at the hub; when the last ends, that ends, too.
  public func makeAsyncIterator() -> Iterator {
    let (view, channel) = (view, channel.withLock { $0 })
    end.withLock { $0 = nil }
    return Iterator(
      feed: self,
      lease: runner.read {
        $0.feeds.add($1, to: view, showing: channel)
      } removing: { engine, key in
        engine.feeds.remove(key, from: view, engine.session)
      })
  }

  /// One reader of the feed.
  public struct Iterator: AsyncIteratorProtocol {
    let feed: AreaFeed
    let lease: FeedLease<AreaMap>

    /// The next map; nil at the end (`AreaFeed.failure`), and as soon as the task is cancelled.
    public mutating func next() async -> AreaMap? { await next(isolation: nil) }
    /// The next map, for a loop of an actor; nil like `next()`.
    public mutating func next(isolation actor: isolated (any Actor)?) async -> AreaMap? {
      let map = await lease.reader.next(isolation: actor)
      if map == nil { feed.end.withLock { $0 = lease.reader.failure } }
      return map
    }
  }
}
