// The operator's settings of one webhook.
public import HubTransport

/// The settings of one webhook: where to, what of, how to sign, and which addresses it may connect to.
public struct WebhookEndpoint: Sendable {
  /// Its name in metrics, logs and files: 1–32 of `a-z 0-9 - _`.
  public let name: String
  public let url: WebhookURL
  public let filter: EventFilter
  public let rule: WebhookRule
  public let signer: WebhookSigner
  public let addresses: AddressRule
  /// The trust of `https`.
  public let tls: TLSClient

  public init(
    name: String, url: WebhookURL, filter: EventFilter, rule: WebhookRule, signer: WebhookSigner,
    addresses: AddressRule = AddressRule(), tls: TLSClient = .system
  ) {
    precondition(Self.isName(name))
    self.name = name
    self.url = url
    self.filter = filter
    self.rule = rule
    self.signer = signer
    self.addresses = addresses
    self.tls = tls
  }

  /// Whether a text may name a webhook or stream: 1–32 of `a-z 0-9 - _`.
  public static func isName(_ text: String) -> Bool {
    1...32 ~= text.utf8.count
      && text.utf8.allSatisfy {
        (0x30...0x39).contains($0) || (0x61...0x7A).contains($0) || $0 == 0x2D || $0 == 0x5F
      }
  }
}
