// Limits of a client on Linux, which has one connection.
#if !canImport(Darwin)
  import HubTransport

  extension LoopRunner {
    /// Calls that wait for the client's thread. At it `send` gives `full`, and calls with an answer fail with `full`.
    static let maximumWork = 16_384
    /// Further room for what must not be lost: an end for each reader of a feed, waiting or in the tables, a token,
    /// starts and stops. At it `stop` waits for room.
    static let maximumRequiredWork = 32_768

    static var loopLimits: EventLoopLimits {
      var limits = EventLoopLimits()
      limits.maximumConnections = 16
      limits.readBufferBytes = 32 * 1024  // the least for TLS
      limits.eventsPerTurn = 16
      limits.arenaKeepBytes = 64 * 1024
      return limits
    }

    /// Bytes of an answer's body to a request outside the socket. Past it the request fails.
    static let answerBytes = 64 * 1024
  }
#endif
