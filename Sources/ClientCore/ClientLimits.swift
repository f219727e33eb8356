// All limits and times of a client, with what happens at each. The values are the protocol's ("Heartbeat and
// reconnect", "Rates") where it has one.

import HubWebSocket

/// Limits of one client's memory and waiting. Times are in seconds. In an app's options a number outside its range
/// counts as the nearest one in it.
public struct ClientLimits: Sendable, Equatable {
  // MARK: What waits to be sent, or to be confirmed

  /// Messages and fixes kept. At it the oldest fix is dropped; without any, new messages are refused.
  public var queuedMessages = 4096
  /// Bytes of all messages and fixes kept, by an estimate of their memory.
  public var queuedBytes = 1024 * 1024
  /// Subscribed channels. At it `subscribe` is refused. A hub allows 256 by default.
  public var subscriptions = 256
  /// Unanswered pings, 1 or more; at it the oldest is forgotten.
  public var pingsOnTheWay = 16
  /// Bytes written at once, 1 or more; the rest follows when these have left.
  public var flushBytes = 64 * 1024
  /// Without contexts, shorter messages are sent uncompressed: they would hardly become smaller.
  public var compressedBytes = 256

  // MARK: What is read

  /// Bytes of one inflated message of the hub, up to 2 GiB. Past it the connection fails with 1009.
  public var messageBytes = 1024 * 1024
  /// The compression ratio of a message, 1 or more, and the size up to which any ratio is accepted. Past it the
  /// connection fails with 1009.
  public var inflateRatio = 200
  public var inflateFreeBytes = 64 * 1024
  /// Answered pings of one read, 1 or more, the newest (RFC 6455 §5.5.3).
  public var pongs = 16
  /// Bytes of the handshake response's head, 1 to 65,535, and of a refusal's body that is kept.
  public var handshakeBytes = 8192
  public var refusalTextBytes = 400

  // MARK: Connecting

  /// For TCP, the handshake and `connected` together, and for a request outside the socket until its answer. Past it
  /// the attempt has failed.
  public var handshakeSeconds = 10.0
  /// For the closing handshake. Past it TCP is aborted.
  public var closingSeconds = 2.0
  /// Delay before attempt n: min(first × 2^(n−1), longest), and up to `jitter` of it more, at random; 0.01 or more.
  public var firstDelay = 1.0
  public var longestDelay = 30.0
  public var jitter = 0.3
  /// A connection that lasted this long resets the back-off.
  public var stableSeconds = 10.0
  /// When a hub or a proxy disconnects all clients at once, the first delay is random up to this, to spread the load.
  public var spreadSeconds = 5.0
  /// After 4429.
  public var overRateSeconds = 60.0
  /// With another network, a wait that only the back-off caused ends within this, at random.
  public var hurrySeconds = 1.0
  /// The delay before a message is sent again that the hub refused for now without `retryAfter`.
  public var retryAfterSeconds = 1.0
  /// Refusals in a row, with a newer hub's code, after which a subscription ends: the code may be permanent.
  public var newerRefusals = 3
  /// A longer Retry-After is reduced to this.
  public var longestRetryAfter = 3600.0

  // MARK: Tokens

  /// A new token is requested this long before the old one ends, but not before this fraction of its lifetime is left;
  /// and up to `jitter` of that earlier.
  public var renewalSeconds = 60.0
  public var renewalPart = 0.2
  /// The delay before a token is requested again, after there was none, the hub refused it, or it had ended.
  public var renewalRetrySeconds = 10.0

  // MARK: While the connection is open

  /// Heartbeat intervals of silence after which the connection is dead.
  public var silentIntervals = 2.5
  /// The time for an existing connection to answer a ping after a change of network.
  public var answerSeconds = 5.0
  /// A shorter heartbeat interval is raised to this, 0.1 or more, so that no hub makes a client ping without end.
  public var shortestHeartbeat = 1.0
  /// A ping is sent after this fraction of an interval, 0.1 or more, so that it arrives before its end.
  public var pingPart = 0.8
  /// The number of unconfirmed fixes that causes an early ping, 1 or more.
  public var unconfirmedFixes = 64
  /// The shortest time between two early pings, 0.1 or more: a hub that cannot store does not confirm any.
  public var earlyPingSeconds = 1.0
  /// A fix that is not stored so long after a pong to a later ping is sent again, in a batch. A hub stores it within
  /// 0.1 s.
  public var storedSeconds = 15.0
  /// The burst assumed for a rate, in seconds of it: the default hub's is 5; a little less allows for bunching by the
  /// network.
  public var burstSeconds = 4.0
  /// The shortest time between two requests for the missed events of one channel.
  public var resubscribeSeconds = 1.0

  public init() {}

  /// These limits with each number in its range; outside it some would crash the program or make it spin.
  package var inRange: ClientLimits {
    var limits = self
    limits.pingsOnTheWay = max(1, pingsOnTheWay)
    limits.flushBytes = max(1, flushBytes)
    limits.messageBytes = min(max(0, messageBytes), Int(Int32.max))
    limits.inflateRatio = max(1, inflateRatio)
    limits.inflateFreeBytes = max(0, inflateFreeBytes)
    limits.pongs = max(1, pongs)
    limits.handshakeBytes = min(max(1, handshakeBytes), Int(UInt16.max))
    limits.refusalTextBytes = max(0, refusalTextBytes)
    limits.unconfirmedFixes = max(1, unconfirmedFixes)
    // `max` gives its first argument where the second is NaN.
    limits.firstDelay = max(0.01, firstDelay)
    limits.longestDelay = max(0.01, longestDelay)
    limits.shortestHeartbeat = max(0.1, shortestHeartbeat)
    limits.pingPart = max(0.1, pingPart)
    limits.earlyPingSeconds = max(0.1, earlyPingSeconds)
    return limits
  }

  /// Seconds before attempt n (1 or more) after a failure, without jitter.
  package func delay(before attempt: Int) -> Double {
    // Beyond 2^30 the delay is the longest one anyway.
    min(firstDelay * Double(UInt64(1) << UInt64(min(attempt, 31) - 1)), longestDelay)
  }

  var socket: ClientSocketLimits {
    ClientSocketLimits(
      headBytes: handshakeBytes, frames: FrameLimits(messageBytes: messageBytes),
      inflate: InflateLimits(messageBytes: messageBytes, ratio: inflateRatio, freeBytes: inflateFreeBytes), pongs: pongs
    )
  }
}
