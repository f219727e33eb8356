// Options that rarely need a change.
public import HubClientCore
public import HubMessages

#if !canImport(Darwin)
  package import HubSystem
#endif

/// Options of a client's connection.
public struct HubOptions: Sendable {
  /// The form of messages. `.binary` takes a seventh of JSON's bytes or fewer; a hub without it uses JSON.
  public var codec = Subprotocol.binary
  /// Offers compression (RFC 7692) where the codec is JSON.
  public var compresses = false
  /// Times and sizes (ClientLimits.swift).
  public var limits = ClientLimits()
  /// On Linux: trusted certificates (PEM) instead of the system's. On Apple systems App Transport Security decides, and
  /// this is ignored.
  public var trustedCertificates: String?
  /// Makes keys, masks, ids and jitter repeatable, for tests. Two clients with one seed must not use one hub.
  public var seed: UInt64?
  #if !canImport(Darwin)
    /// The clock of the client's thread, for tests and measurements: read at the beginning of each turn, and its uptime
    /// must advance while the device sleeps.
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
      configuration.limits = limits.inRange
      // All unconfirmed messages must fit: a dropped one would count as confirmed.
      configuration.limits.queuedMessages = max(limits.queuedMessages, HubEngine.queuedMessages)
      configuration.limits.queuedBytes = max(limits.queuedBytes, HubEngine.queuedBytes)
      configuration.seed = seed
      if compresses { configuration.offerCompression() }
      return configuration
    } catch {
      throw HubError(error)
    }
  }
}
