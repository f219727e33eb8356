// modules: HubBytes HubGeo HubMessages HubHTTP HubCore HubTokens HubSystem HubTransport HubJournal
// modules: HubBackplane HubRuntime HubWebhooks
// libraries: ssl crypto
// libFuzzer entry for what sets a webhook and what is stored of it: definitions over HTTP and in files, URLs, the rule
// of where they may go, ids, progress, dead letters, requests of operators (run.sh in this folder builds and runs it).
//
// Checked beyond not crashing: a definition is read back from its file as it was; what is sent of a URL cannot end a
// line of a request; a URL that a rule allows has a host that it has.

import HubBytes
import HubMessages
import HubTransport

@testable import HubWebhooks

private func checkDefinition(_ data: [UInt8], _ secret: WebhookSecret) {
  _ = WebhookDefinition(name: "a", file: data)
  guard let members = JSONValue(parsing: data)?.members,
    var definition = try? WebhookDefinition(name: "a", members: members)
  else { return }
  definition.secrets = [.init(secret: secret)]
  _ = definition.rotate(to: secret, until: Timestamp(milliseconds: 1_764_000_000_000))
  precondition(WebhookDefinition(name: "a", file: definition.file) == definition, "read as it was written")
}

private func isOneWord(_ text: String) -> Bool { text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F } }

private func checkURL(_ text: String) {
  if let url = WebhookURL(text) {
    precondition(url.target.hasPrefix("/") && isOneWord(url.target) && isOneWord(url.authority) && !url.host.isEmpty)
    guard let shown = WebhookURL("\(url)") else { preconditionFailure("what is shown is a URL") }
    precondition((shown.isSecure, shown.host, shown.port) == (url.isSecure, url.host, url.port))
  }
  if let url = StreamURL(text) { precondition(StreamURL("\(url)")?.kind == url.kind) }
}

/// `PREFIX URL`
private func checkRule(_ text: String) {
  let words = text.split(separator: " ", maxSplits: 1).map(String.init)
  var rule = URLRule()
  guard words.count == 2, rule.allow(words[0]), let url = WebhookURL(words[1]), rule.allows(url) else { return }
  guard words[0] != "https://", let allowed = WebhookURL(words[0]) else { return }
  precondition((allowed.isSecure, allowed.host, allowed.port) == (url.isSecure, url.host, url.port))
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  let data = [UInt8](UnsafeBufferPointer(start: start, count: count))
  guard let secret = WebhookSecret(bytes: Array(1...32)) else { preconditionFailure("32 bytes are enough") }
  checkDefinition(data, secret)
  let text = String(decoding: data, as: UTF8.self)
  checkURL(text)
  checkRule(text)
  _ = WebhookSecret(text)
  _ = EventFilter.Channels(text).map { precondition(EventFilter.Channels($0.description) == $0) }
  _ = EventID(text)
  _ = DeliveryCommand(text)
  _ = DeadLetter(text[...])
  _ = ProgressFile.parse(text)
  return 0
}
