// The API in Apple's own types, URL and Date. Elsewhere this library does not use Foundation.
#if canImport(Darwin)
  public import Foundation

  extension HubError: LocalizedError {
    /// The `explanation`, also for `localizedDescription`.
    public var errorDescription: String? { explanation }
  }

  extension DriverHub {
    /// A driver's connection to the hub at a `URL`. Throws `badURL`; see `init(_:tokens:store:power:options:)`.
    public convenience init(
      _ url: URL, tokens: TokenSource, store: FixStore = .applicationSupport, power: PowerPolicy = .standard,
      options: HubOptions = HubOptions()
    ) throws(HubError) {
      try self.init(url.absoluteString, tokens: tokens, store: store, power: power, options: options)
    }
  }

  extension RiderHub {
    /// A rider's connection to the hub at a `URL`. Throws `badURL`.
    public convenience init(_ url: URL, tokens: TokenSource, options: HubOptions = HubOptions()) throws(HubError) {
      try self.init(url.absoluteString, tokens: tokens, options: options)
    }

    /// Makes a link that ends at a date; see `share(_:until:)`.
    public func share(_ trip: TripID, until: Date) async throws(HubError) -> Share {
      try await share(trip, until: Timestamp(until))
    }
  }
#endif
