// Who a peer is and what it may see. In this version a credential comes from the query (`--dev-auth`).
import HTTP
import Messages

/// A peer's identity, after it was checked.
struct Credential: Sendable, Equatable {
  var role: Role
  var id: Identifier

  /// Whether the credential names the trip; dev credentials name every trip.
  func grants(trip: Identifier) -> Bool { true }

  /// A rider: trips its credential names. A driver: its own channel and trips. Ops: all.
  func maySubscribe(to channel: Channel) -> Bool {
    switch (role, channel) {
    case (.ops, _): true
    case (_, .trip(let trip)): grants(trip: trip)
    case (.driver, .driver(let driver)): driver == id
    case (.rider, .driver), (_, .fence), (_, .fleet): false
    case (_, .area), (_, .nearby): true
    }
  }
}

/// Why no credential was accepted; the text goes to the peer with HTTP 401.
struct CredentialError: Error, Equatable {
  var text: String
}

extension Query {
  /// The decoded value of a parameter; nil where it is absent or not well encoded.
  func text(_ name: StaticString) -> String? {
    do throws(HTTPError) { return try string(name) } catch { return nil }
  }
}

extension Credential {
  /// Reads `role` and `id` of the query; only where `--dev-auth` allows it.
  init(query: Query, allowsDevelopmentCredentials: Bool) throws(CredentialError) {
    guard allowsDevelopmentCredentials else {
      throw CredentialError(text: "no credential: this hub was started without --dev-auth and takes no tokens yet")
    }
    guard let roleText = query.text("role"), let idText = query.text("id") else {
      throw CredentialError(text: "no credential: give ?role=driver|rider|ops&id=<id> (development credentials)")
    }
    let role: Role
    switch roleText {
    case "driver": role = .driver
    case "rider": role = .rider
    case "ops": role = .ops
    default: throw CredentialError(text: "role must be driver, rider or ops")
    }
    guard let id = Identifier(idText) else {
      throw CredentialError(text: "id must be 1-64 of A-Z a-z 0-9 . _ -")
    }
    self.init(role: role, id: id)
  }
}
