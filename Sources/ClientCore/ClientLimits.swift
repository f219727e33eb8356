// Every limit and time of a client, in one place, with what happens at it. The values are the protocol's ("Heartbeat
// and reconnect", "Rates") where it names one.

import HubWebSocket

/// How much one client keeps, and how long it waits. Times are in seconds.
public struct ClientLimits: Sendable, Equatable {
  // MARK: What waits to be sent, or to be confirmed

  /// Messages and fixes kept. At it the oldest fix gives way; where there is none, what is new is refused.
  public var queuedMessages = 4096
  /// Bytes of all messages and fixes kept, by an estimate of what each costs in memory.
  public var queuedBytes = 1024 * 1024
  /// Channels subscribed to. At it `subscribe` is refused. A hub takes 256 by default.
  public var subscriptions = 256
  /// Pings that are remembered until their pong; at it the oldest is forgotten.
  public var pingsOnTheWay = 16
  /// Bytes written in one go; what is left follows when these are gone.
  public var flushBytes = 64 * 1024
  /// Where no contexts are kept, messages under this size go out uncompressed: they would hardly become smaller.
  public var compressedBytes = 256

  // MARK: What is read

  /// Bytes of one message of the hub, when it is inflated. Past it the connection fails with 1009.
  public var messageBytes = 1024 * 1024
  /// Bytes that a compressed message may become for each of its own, and up to which size that does not matter. Past
  /// it the connection fails with 1009.
  public var inflateRatio = 200
  public var inflateFreeBytes = 64 * 1024
  /// Pings that came in one read and are answered; of more, the newest (RFC 6455 §5.5.3).
  public var pongs = 16
  /// Bytes of the head of the handshake's answer, and of a refusal's body that is kept to be shown.
  public var handshakeBytes = 8192
  public var refusalTextBytes = 400

  // MARK: Connecting

  /// For TCP, the handshake and `connected` together, and for a request beside the socket until its answer is there.
  /// Past it the attempt has failed.
  public var handshakeSeconds = 10.0
  /// For the closing handshake. Past it TCP is cut off.
  public var closingSeconds = 2.0
  /// Delay before attempt n: min(first × 2^(n−1), longest), and up to `jitter` of it more, at random.
  public var firstDelay = 1.0
  public var longestDelay = 30.0
  public var jitter = 0.3
  /// A connection that stood for this long was a good one: the next failure counts as the first.
  public var stableSeconds = 10.0
  /// Where a hub, or a proxy, cuts off all at once, the first delay is drawn from 0 to this: nobody storms a restart.
  public var spreadSeconds = 5.0
  /// After 4429.
  public var overRateSeconds = 60.0
  /// Where the device has another network, a wait that nobody but the back-off asked for ends within this, at random.
  public var hurrySeconds = 1.0
  /// A Retry-After longer than this is taken for this.
  public var longestRetryAfter = 3600.0

  // MARK: Tokens

  /// A new token is asked for this long before the old one ends, but not before this part of its time is left; and up
  /// to `jitter` of that earlier.
  public var renewalSeconds = 60.0
  public var renewalPart = 0.2
  /// Asked again after so long, where there was none, or the hub refused it.
  public var renewalRetrySeconds = 10.0

  // MARK: While it stands

  /// Nothing heard for so many heartbeat intervals: the connection is dead.
  public var silentIntervals = 2.5
  /// Where the device has another network, a connection that stands has this long to answer a ping.
  public var answerSeconds = 5.0
  /// A heartbeat interval that is shorter counts as this: no hub has a client ping without end.
  public var shortestHeartbeat = 1.0
  /// A ping goes out after this part of an interval, so that it is there before the interval ends.
  public var pingPart = 0.8
  /// So many fixes unconfirmed ask for a ping before it is due by time.
  public var unconfirmedFixes = 64
  /// A fix that is not stored so long after a pong to a later ping goes out again, in a batch. A hub stores it within
  /// 0.1 s.
  public var storedSeconds = 15.0
  /// The burst assumed for a rate, in seconds of it: the default hub's is 5; a little less leaves room for what the
  /// network bunches.
  public var burstSeconds = 4.0
  /// The shortest time between two requests for the missed events of one channel.
  public var resubscribeSeconds = 1.0

  public init() {}

  /// Seconds before attempt n (1 or more) at something that failed, without jitter.
  package func delay(before attempt: Int) -> Double {
    // Beyond 2^30 the delay has long been the longest one.
    min(firstDelay * Double(UInt64(1) << UInt64(min(attempt, 31) - 1)), longestDelay)
  }

  var socket: ClientSocketLimits {
    ClientSocketLimits(
      headBytes: handshakeBytes, frames: FrameLimits(messageBytes: messageBytes),
      inflate: InflateLimits(messageBytes: messageBytes, ratio: inflateRatio, freeBytes: inflateFreeBytes), pongs: pongs
    )
  }
}
