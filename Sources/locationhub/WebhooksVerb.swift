// `webhooks`: asks a hub to deliver again, by a small file beside its journal that it reads at its start and on SIGHUP.
import HubCommandLine
import HubJournal
import HubSystem
import HubWebhooks

let webhooks = Verb(
  name: "webhooks", operands: "enable NAME | replay NAME ID",
  summary: """
    Has a hub deliver to a webhook again, at its next start or SIGHUP.
    enable: after its receiver answered 410.
    replay: the event with this webhook-id, and all behind it, are sent once more, with the ids that they had.
    """,
  options: [Option("data", "DIR", "the folder of the hub's journal (./data)")],
  run: runWebhooks)

private func runWebhooks(_ arguments: Arguments) throws(CommandError) -> ExitCode {
  let words = arguments.operands
  guard words.count >= 2, WebhookEndpoint.isName(words[1]) else {
    throw .usage("webhooks takes a word and a webhook's name: locationhub webhooks enable orders")
  }
  let text = ([words[0]] + words[2...]).joined(separator: " ")
  guard WebhookRequest(text) != nil else {
    throw .usage("webhooks knows enable NAME, and replay NAME with an id such as evt_3k9_120_64, not \(text)")
  }
  do throws(JournalError) {
    try WebhookRequest.leave(text, for: words[1], journal: arguments.string("data") ?? "./data")
  } catch {
    throw .failed("no hub with webhooks has stored anything there: \(error)")
  }
  StandardStream.output.write("\(words[1]): \(text): left for the hub; send it SIGHUP, or start it\n")
  return .ok
}
