// `webhooks`: the progress of a hub's webhooks and streams and their failed events; and asks a hub to deliver again, by
// a small file beside its journal that it reads at its start and on SIGHUP.
import HubCommandLine
import HubJournal
import HubSystem
import HubWebhooks

let webhooks = Verb(
  name: "webhooks", operands: "list | dead NAME | enable NAME | replay NAME ID",
  summary: """
    Shows how far a hub's webhooks and streams are, or has one of them deliver again.
    list: each with its state, its position in the journal, channels that are behind, and dead letters; exit code 1
    where the file of one is damaged.
    dead: the events that were given up: time, id, channel, reason.
    enable: after its receiver answered 410; at the hub's next start or SIGHUP, as replay.
    replay: the event with this webhook-id, and all behind it, are sent once more, with the ids that they had.
    """,
  options: [Option("data", "DIR", "the folder of the hub's journal (./data)")],
  run: runWebhooks)

private func runWebhooks(_ arguments: Arguments) throws(CommandError) -> ExitCode {
  let (words, data) = (arguments.operands, arguments.string("data") ?? "./data")
  if words == ["list"] {
    let found = try stored { () throws(JournalError) in try StoredDelivery.all(journal: data) }
    for delivery in found.readable { StandardStream.output.write(line(delivery)) }
    for name in found.damaged { StandardStream.output.write("\(name) unreadable: its file of progress is damaged\n") }
    return found.damaged.isEmpty ? .ok : .failed
  }
  guard words.count >= 2, WebhookEndpoint.isName(words[1]) else {
    throw .usage("webhooks takes list, or a word and a webhook's name: locationhub webhooks enable orders")
  }
  let name = words[1]
  if words.count == 2, words[0] == "dead" {
    let found = try stored { () throws(JournalError) in try StoredDelivery.deadLetters(of: name, journal: data) }
    guard let lines = found else { throw unknown(name, data) }
    for line in lines { StandardStream.output.write(line + "\n") }
    return .ok
  }
  let text = ([words[0]] + words[2...]).joined(separator: " ")
  guard DeliveryCommand(text) != nil else {
    throw .usage(
      "webhooks knows list, dead NAME, enable NAME, and replay NAME with an id such as evt_3k9_120_64, not \(text)")
  }
  let isLeft = try stored { () throws(JournalError) in try StoredDelivery.leave(text, for: name, journal: data) }
  guard isLeft else { throw unknown(name, data) }
  StandardStream.output.write("\(name): \(text): left for the hub; send it SIGHUP, or start it\n")
  return .ok
}

private func unknown(_ name: String, _ data: String) -> CommandError {
  .failed("the hub of \(data) has no webhook or stream \(name): locationhub webhooks list has their names")
}

private func line(_ delivery: StoredDelivery) -> String {
  let state = delivery.isEnabled ? "on" : "off"
  let position = "\(delivery.position.group)_\(delivery.position.record)"
  return "\(delivery.name) \(state) at \(position), \(delivery.channelsBehind) channels behind, "
    + "\(delivery.deadLetters) dead letters\n"
}

private func stored<Value>(_ body: () throws(JournalError) -> Value) throws(CommandError) -> Value {
  do throws(JournalError) { return try body() } catch {
    throw .failed("no hub with webhooks has stored anything there: \(error)")
  }
}
