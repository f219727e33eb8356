// What rarely needs to be another than it is.
public import HubClientCore
public import HubMessages
import HubWebSocket

#if !canImport(Darwin)
  package import HubSystem
#endif

/// How a client speaks with its hub.
public struct HubOptions: Sendable {
  /// How messages are written. `.binary` takes a seventh of JSON's bytes or fewer; a hub without it speaks JSON.
  public var codec = Subprotocol.binary
  /// Offers compression (RFC 7692) where the codec is JSON.
  public var compresses = false
  /// Times and sizes (ClientLimits.swift).
  public var limits = ClientLimits()
  /// On Linux: certificates (PEM) that are trusted in place of the system's. On Apple systems App Transport Security
  /// decides, and this is not looked at.
  public var trustedCertificates: String?
  /// Makes keys, masks, ids and jitter repeatable, for tests. Two clients with one seed must not meet at one hub.
  public var seed: UInt64?
  #if !canImport(Darwin)
    /// What the client's thread has for a clock, for tests and measurements: it is read at the beginning of each turn,
    /// before anything else, and its uptime must go on while the device sleeps.
    package var clock: @Sendable () -> ClockReading = {
      ClockReading(uptimeNanoseconds: continuousUptime(), unixMilliseconds: Timestamp.now.milliseconds)
    }
  #endif

  public init() {}

  func configuration(_ text: String, _ tokens: TokenSource) throws(HubError) -> ClientConfiguration {
    do throws(HubURLError) {
      var url = try HubURL(text)
      if let development = tokens.development {
        url = try url.adding("role", "\(development.role.name)").adding("id", "\(development.id)")
      }
      var configuration = ClientConfiguration(url: url)
      configuration.codec = codec
      configuration.limits = limits
      // All that may be on its way must fit: nothing of it may give way, for then it would count as arrived.
      configuration.limits.queuedMessages = max(limits.queuedMessages, HubEngine.queuedMessages)
      configuration.limits.queuedBytes = max(limits.queuedBytes, HubEngine.queuedBytes)
      configuration.seed = seed
      if compresses { configuration.compression = .withoutContexts }
      return configuration
    } catch {
      throw HubError(error)
    }
  }
}
