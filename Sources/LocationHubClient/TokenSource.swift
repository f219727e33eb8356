// The source of tokens: the app's back end, which signs them.
public import HubClientCore
public import HubMessages

/// Gives the client its tokens.
///
/// It is called before the first connection (`.first`), some time before a token ends (`.expiring`: 60 s, or a fifth of
/// its lifetime where that is less), and when the hub has refused one (`.refused`); one call at a time. Meanwhile an
/// open session continues. When it throws, it is called again after a delay that grows from 1 s to 30 s, and up to 30 %
/// of it more; when it throws a `HubError` whose `retry` is `.never`, the client stops (`ConnectionState.stopped`):
/// nobody is signed in. A `DriverHub` also stops when the hub accepts its token but the token's role is not `driver`.
/// `start()` calls the source again; a stopped client does not.
public struct TokenSource: Sendable {
  let fetch: @Sendable (TokenNeed) async throws -> String
  /// Development credentials instead of tokens.
  let development: (role: Role, id: Identifier)?

  /// Calls the app for tokens. `fetch` runs in a task of its own without a timeout.
  public init(_ fetch: @Sendable @escaping (TokenNeed) async throws -> String) {
    self.fetch = fetch
    development = nil
  }

  private init(development: (role: Role, id: Identifier)) {
    fetch = { _ in "" }
    self.development = development
  }

  /// One token until its end; then the client stops.
  public static func fixed(_ token: String) -> TokenSource {
    TokenSource { need in
      guard need == .first else { throw HubError(.token, "the token has ended, and there is no other") }
      return token
    }
  }

  /// Development credentials, for a hub that was started with `--dev-auth`.
  public static func development(_ role: Role, _ id: Identifier) -> TokenSource {
    TokenSource(development: (role, id))
  }
}
