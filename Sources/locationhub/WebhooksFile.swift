// The file of `serve --webhooks`: a line `[NAME]` begins each webhook, followed by `name = value` lines with its URL
// and events (protocol/webhooks.md; protocol/streams.md for streams).
import HubCommandLine
import HubGateway
import HubRuntime
import HubTokens
import HubTransport
import HubWebhooks

/// One section: a webhook or stream.
struct WebhooksFile: Sendable {
  private var url: WebhookURL?
  var stream: StreamURL?
  var user: String?
  var passwordFile: String?
  var tokenFile: String?
  var prefix: String?
  var maximumLength: Int?
  var positions = false
  var channels: [EventFilter.Channels] = []
  var types: Set<String> = []
  private var secretFile: String?
  private var signKey: String?
  private var ca: String?
  var allowed: [AddressBlock] = []
  private var concurrency = 4
  var giveUpAfter = WebhookRule.usualGiveUpSeconds

  static let settings: [Setting<WebhooksFile>] = webhookSettings + streamSettings

  private static let webhookSettings: [Setting<WebhooksFile>] = [
    Setting("url", "URL", "where to POST events", mustBe: "https://HOST[:PORT][/PATH], or http with allow") {
      file, text in
      file.url = WebhookURL(text)
      return file.url != nil
    },
    Setting(
      "channel", "CHANNEL", "deliver events of this channel",
      mustBe: "*, trips, trip:ID, driver:ID or fence:ID; ID* too",
      repeats: true
    ) { file, text in EventFilter.Channels(text).map { file.channels.append($0) } != nil },
    Setting(
      "type", "TYPE", "deliver events of this type only",
      mustBe: "one of \(EventFilter.allTypes.sorted().joined(separator: ", "))", repeats: true
    ) { file, text in
      file.types.insert(text)
      return EventFilter.allTypes.contains(text)
    },
    Setting("secret-file", \.secretFile, .text, "FILE", "one to four lines whsec_…, the newest first"),
    Setting("sign-key", \.signKey, .text, "FILE", "also sign with this Ed25519 key (PEM)"),
    Setting("ca", \.ca, .text, "FILE", "trust these certificates (PEM)", otherwise: "the system's"),
    Setting(
      "allow", "BLOCK", "addresses inside that may be connected to, also by http",
      mustBe: "an address or a block such as 10.0.0.0/8", repeats: true
    ) { file, text in AddressBlock(text).map { file.allowed.append($0) } != nil },
    Setting(
      "concurrency", \.concurrency, .whole(1...WebhookRule.maximumConcurrency), "N", "requests under way at once"),
    Setting(
      "give-up-after", \.giveUpAfter, .number(1...2_592_000), "SECONDS", "an event that fails longer is a dead letter"),
  ]

  /// Reads and checks a file.
  static func read(_ path: String) throws(CommandError) -> Deliveries {
    var deliveries = Deliveries()
    for (name, text) in try sections(of: try readText(path), path) {
      let plain = WebhooksFile()
      var given = Arguments(collecting: [], verb: path, options: settings.map { $0.option(plain) })
      given.merge(configuration: text, file: path)
      var file = plain
      given.collect(settings, into: &file)
      try given.faults.check()
      let section = "\(path): [\(name)]"
      if let url = file.stream {
        deliveries.streams.append(try file.streamEndpoint(name, url, section, given.names))
      } else {
        if let other = streamSettings.first(where: { given.isGiven($0.name) }) {
          throw .usage("\(section): \(other.name) is for streams; give stream = … instead of url")
        }
        deliveries.webhooks.append(try file.endpoint(name, section))
      }
    }
    let (webhooks, streams) = (WebhookEndpoint.maximumCount, StreamEndpoint.maximumCount)
    guard !deliveries.isEmpty, deliveries.webhooks.count <= webhooks, deliveries.streams.count <= streams else {
      throw .usage("\(path): give up to \(webhooks) webhooks and \(streams) streams, each behind a line [NAME]")
    }
    return deliveries
  }

  /// The text of each webhook, with the other lines empty, so that faults have the right line numbers.
  private static func sections(of text: String, _ path: String) throws(CommandError) -> [(name: String, text: String)] {
    var sections: [(name: String, text: String)] = []
    var empty = ""
    for line in SettingLine.all(of: text) {
      let words = line.drop { $0 == " " }
      if words.hasPrefix("[") {
        let name = String(words.dropFirst().prefix { $0 != "]" })
        guard WebhookEndpoint.isName(name), !sections.contains(where: { $0.name == name }) else {
          throw .usage("\(path): [\(name)] must be another name of 1-32 letters a-z, digits, - and _")
        }
        sections.append((name, empty + "\n"))
      } else if sections.isEmpty {
        guard words.isEmpty || words.hasPrefix("#") else {
          throw .usage("\(path): begin a webhook or stream with [NAME]")
        }
      } else {
        sections[sections.count - 1].text += line + "\n"
      }
      empty += "\n"
    }
    return sections
  }

  private func endpoint(_ name: String, _ section: String) throws(CommandError) -> WebhookEndpoint {
    guard let url else { throw .usage("\(section): give url = https://…, or stream = …") }
    guard url.isSecure || !allowed.isEmpty else {
      throw .usage("\(section): http is for addresses in allow = … only; use https")
    }
    guard let filter = EventFilter(channels: channels, types: types) else {
      throw .usage("\(section): give channel = *, or which, once or more")
    }
    guard let rule = WebhookRule(concurrency: concurrency, giveUpAfterSeconds: giveUpAfter) else {
      throw .usage("\(section): concurrency or give-up-after is out of range")
    }
    return WebhookEndpoint(
      name: name, url: url, filter: filter, rule: rule, signer: try signer(section),
      addresses: AddressRule(allowed: allowed), tls: try trust())
  }

  func signer(_ section: String) throws(CommandError) -> WebhookSigner {
    guard let secretFile else { throw .usage("\(section): give secret-file = FILE") }
    let secrets = try readText(secretFile).split(whereSeparator: \.isWhitespace).map { WebhookSecret(String($0)) }
    let key = try signKey.map { (file) throws(CommandError) in try readKeys(file).keys.first } ?? nil
    do throws(KeyError) {
      // One invalid secret makes the list empty, which the signer refuses.
      let good = secrets.compactMap { $0 }
      return try WebhookSigner(secrets: good.count == secrets.count ? good : [], key: key)
    } catch {
      throw .failed(
        "\(section): cannot use \(secretFile)\(signKey.map { " or \($0)" } ?? ""): expected one to four lines of "
          + "whsec_ and base64 of 32 to 64 bytes (echo whsec_$(openssl rand -base64 32)), and a private Ed25519 key")
    }
  }

  func trust() throws(CommandError) -> TLSClient { try ca.map(readTrust) ?? .system }
}

extension ServeOptions {
  /// Reloads the file, where one is set now, or was `before`. An invalid one changes nothing: the hub continues with
  /// its present webhooks.
  func reloadWebhooks(_ server: Server, before: String?) {
    guard webhooks != nil || before != nil else { return }
    _ = server.reload(.webhooks) { () throws(CommandError) in
      let deliveries = try webhooks.map { (file) throws(CommandError) in try WebhooksFile.read(file) } ?? Deliveries()
      guard server.replaceDeliveries(deliveries) else {
        throw .failed("the hub was started without a journal, from which events are delivered: restart it")
      }
    }
  }
}
