// A webhook that was set over HTTP. It is stored in the folder of the webhooks' progress, a file each, not in the
// journal, so that exports and backups of the journal contain no secrets.
package import HubBytes
import HubMessages
import HubSystem
import HubTokens

/// A webhook as it was set over HTTP: where to, what of, and its secrets.
public struct WebhookDefinition: Sendable, Equatable {
  struct Secret: Sendable, Equatable {
    var secret: WebhookSecret
    /// When it stops signing; nil for the present one.
    var until: Timestamp?
  }

  public let name: String
  let url: WebhookURL
  /// The given URL with its query.
  private let urlText: String
  let filter: EventFilter
  let rule: WebhookRule
  /// Newest first.
  var secrets: [Secret] = []

  package static let memberNames = ["url", "channels", "types", "concurrency", "giveUpAfter"]

  /// Reads the members `url`, `channels`, `types?`, `concurrency?` and `giveUpAfter?` (seconds). Other members are
  /// ignored.
  package init(name: String, members: [String: JSONValue]) throws(WebhookFault) {
    guard WebhookEndpoint.isName(name) else { throw .bad("a webhook's name is 1-32 of a-z 0-9 - _") }
    self.name = name
    guard let text = members["url"]?.string, let url = WebhookURL(text) else {
      throw .bad("url must be https://HOST[:PORT][/PATH]")
    }
    (self.url, urlText) = (url, text)
    let channels = try Self.texts(members["channels"], "channels")
    let known = channels.compactMap { EventFilter.Channels($0) }
    let types = members["types"].map { $0 == .null } ?? true ? [] : try Self.texts(members["types"], "types")
    guard known.count == channels.count, !known.isEmpty, known.count <= EventFilter.maximumChannels else {
      throw .bad(
        "channels must be 1 to \(EventFilter.maximumChannels) of *, trips, trip:ID, driver:ID and fence:ID, ID* too")
    }
    guard let filter = EventFilter(channels: known, types: Set(types)) else {
      throw .bad("types must be of \(EventFilter.allTypes.sorted().joined(separator: ", "))")
    }
    self.filter = filter
    let concurrency = try Self.number(members["concurrency"], "concurrency") ?? 4
    let giveUpAfter = try Self.number(members["giveUpAfter"], "giveUpAfter") ?? WebhookRule.usualGiveUpSeconds
    guard let whole = Int(exactly: concurrency), (1...2_592_000).contains(giveUpAfter),
      let rule = WebhookRule(concurrency: whole, giveUpAfterSeconds: giveUpAfter)
    else {
      throw .bad(
        "concurrency must be 1 to \(WebhookRule.maximumConcurrency), and giveUpAfter 1 to 2592000 seconds")
    }
    self.rule = rule
  }

  private static func texts(_ value: JSONValue?, _ name: String) throws(WebhookFault) -> [String] {
    guard let elements = value?.elements, case let texts = elements.compactMap(\.string), texts.count == elements.count
    else { throw .bad("\(name) must be a list of texts") }
    return texts
  }

  private static func number(_ value: JSONValue?, _ name: String) throws(WebhookFault) -> Double? {
    guard let value, value != .null else { return nil }
    guard let number = value.number else { throw .bad("\(name) must be a number") }
    return number
  }

  // MARK: Secrets

  /// Gives it another secret; the one before signs as well until `until`, and those before it until their own times,
  /// so that a receiver may have any of them whose answer was lost. Returns false, and changes nothing, where
  /// `WebhookSigner.maximumSecrets` sign already.
  mutating func rotate(to secret: WebhookSecret, until: Timestamp) -> Bool {
    guard secrets.count < WebhookSigner.maximumSecrets else { return false }
    secrets = [Secret(secret: secret)] + secrets.map { Secret(secret: $0.secret, until: $0.until ?? until) }
    return true
  }

  /// Drops expired secrets.
  mutating func dropOldSecrets(_ now: Timestamp) { secrets.removeAll { $0.until.map { $0 <= now } ?? false } }

  /// The endpoint for delivery. `allowed` has the internal addresses that it may connect to.
  func endpoint(_ allowed: URLRule) throws(KeyError) -> WebhookEndpoint {
    WebhookEndpoint(
      name: name, url: url, filter: filter, rule: rule, signer: try WebhookSigner(secrets: secrets.map(\.secret)),
      addresses: AddressRule(allowed: allowed.addresses))
  }

  // MARK: The file

  static let suffix = ".webhook"

  /// Reads what the property `file` gives; nil for anything else.
  init?(name: String, file: [UInt8]) {
    guard let members = JSONValue(parsing: file)?.members, let stored = members["secrets"]?.elements else { return nil }
    do throws(WebhookFault) { try self.init(name: name, members: members) } catch { return nil }
    for element in stored {
      guard let text = element.members?["secret"]?.string, let secret = WebhookSecret(text) else { return nil }
      let until = element.members?["until"]?.number.flatMap { Int64(exactly: $0) }.map(Timestamp.init(milliseconds:))
      secrets.append(Secret(secret: secret, until: until))
    }
    guard 1...WebhookSigner.maximumSecrets ~= secrets.count else { return nil }
  }

  var file: [UInt8] {
    var text = ByteBuffer()
    text.append("{\"url\":", urlText)
    text.append(",\"channels\":", filter.channels.map(\.description))
    text.append(",\"types\":", filter.types.sorted())
    text.append(",\"concurrency\":", rule.concurrency)
    text.append(",\"giveUpAfter\":", rule.giveUpAfterSeconds)
    text.append(",\"secrets\":")
    text.append(list: secrets) { text, secret in
      text.append("{\"secret\":", secret.secret.text)
      text.append(",\"until\":", secret.until, as: .unixMilliseconds)
      text.append("}")
    }
    text.append("}\n")
    return text.array()
  }
}

/// Why a question about webhooks is refused.
public enum WebhookFault: Error, Sendable, Equatable {
  case bad(String)
  /// The operator's settings do not allow it, or the webhook is in the operator's file.
  case forbidden(String)
  case unknown(String)
  case full(String)
  /// It is refused for now, and may be asked again.
  case busy(String)
  /// A failure of the disk or the journal.
  case failed(String)
}
