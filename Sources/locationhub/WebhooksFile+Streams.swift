// Sections of the file of `serve --webhooks` with `stream = …` instead of `url = …` (protocol/streams.md).
import HubCommandLine
import HubTransport
import HubWebhooks

extension WebhooksFile {
  static let streamSettings: [Setting<WebhooksFile>] = [
    Setting(
      "stream", "URL", "a server that stores events as a stream",
      mustBe: "nats://HOST[:PORT] (tls:// with TLS), redis[s]://HOST[:PORT] or http[s]://HOST[:PORT][/PATH]"
    ) { file, text in
      file.stream = StreamURL(text)
      return file.stream != nil
    },
    Setting("user", \.user, .text, "NAME", "whom to be at the server"),
    Setting("password-file", \.passwordFile, .text, "FILE", "its first line is the password"),
    Setting("token-file", \.tokenFile, .text, "FILE", "its first line is the token (NATS)"),
    Setting(
      "prefix", "TEXT", "before subjects and keys", mustBe: "1-64 of A-Z a-z 0-9 . _ - { }"
    ) { file, text in
      file.prefix = text
      return StreamEndpoint.isPrefix(text)
    },
    Setting("positions", \.positions, .onOff, "on|off", "send positions of all drivers, too"),
    Setting(
      "max-length", \.maximumLength, .whole(1000...1_000_000_000), "N", "entries that a Redis stream keeps, roughly"),
  ]

  /// The settings of each kind of stream, without the common ones.
  private static func names(_ kind: StreamURL.Kind) -> Set<String> {
    switch kind {
    case .nats: ["user", "password-file", "token-file", "prefix", "ca"]
    case .redis: ["user", "password-file", "prefix", "max-length", "ca"]
    case .batches: ["secret-file", "sign-key", "allow", "ca"]
    }
  }

  /// `given`: the names of the section's settings.
  func streamEndpoint(
    _ name: String, _ url: StreamURL, _ section: String, _ given: [String]
  ) throws(CommandError) -> StreamEndpoint {
    let known = Self.names(url.kind).union(["stream", "channel", "type", "give-up-after", "positions"])
    if let other = given.first(where: { !known.contains($0) }) {
      throw .usage("\(section): \(other) is not for a stream to \(url)")
    }
    guard let filter = EventFilter(channels: channels, types: types) else {
      throw .usage("\(section): give channel = *, or which, once or more")
    }
    var endpoint = StreamEndpoint(name: name, url: url, filter: filter)
    endpoint.credentials = StreamCredentials(
      user: user, password: try passwordFile.map(readFirstLine), token: try tokenFile.map(readFirstLine))
    guard user == nil || passwordFile != nil else { throw .usage("\(section): user needs password-file = FILE") }
    if let prefix { endpoint.prefix = prefix }
    if let maximumLength { endpoint.maximumLength = maximumLength }
    endpoint.giveUpAfterSeconds = giveUpAfter
    endpoint.hasPositions = positions
    endpoint.addresses = AddressRule(allowed: allowed)
    endpoint.tls = try trust()
    switch url.kind {
    case .nats:
      guard !(endpoint.prefix.contains { "{}".contains($0) }) else {
        throw .usage("\(section): a prefix of NATS has no braces")
      }
    case .redis: break
    case .batches:
      guard url.isSecure || !allowed.isEmpty else {
        throw .usage("\(section): http is for addresses in allow = … only; use https")
      }
      endpoint.signer = try signer(section)
    }
    return endpoint
  }
}
