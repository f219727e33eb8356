// The rows of the table of metrics that are about webhooks, each with the webhook's name as a label.
import HubWebhooks

extension Metric {
  static let webhooks: [Metric] = [
    Metric(
      name: "webhook_deliveries_total", label: "webhook",
      help: "Tries to deliver an event by outcome: delivered, failed (tried again, or given up)."
    ) { reading in
      reading.webhooks.map {
        $0.flatMap { outcomes(of: $0.name, [("delivered", $0.delivered), ("failed", $0.failed)]) }
      }
    },
    ofWebhook("webhook_seconds_total", { $0.nanoseconds }, "Time from the begin of a try to its answer, of all tries."),
    ofWebhook("webhook_dead_total", { $0.dead }, "Events that were given up after give-up-after."),
    ofWebhook(
      "webhook_lost_total", { $0.lost }, "Events or groups deleted by retention, or damaged, before their delivery."),
    ofWebhook("webhook_not_stored_total", { $0.notStored }, "Times that a webhook's progress could not be stored."),
    ofWebhook("webhook_under_way", { UInt64($0.underWay) }, "Requests that have no answer yet."),
    ofWebhook("webhook_channels_behind", { UInt64($0.lanes) }, "Channels with an event that is not delivered."),
    Metric(
      name: "webhook_oldest_undelivered_seconds", label: "webhook",
      help: "Age of the oldest known event that is not delivered; 0 for none."
    ) { reading in
      reading.webhooks.map { $0.map { ("", $0.name, .seconds(Double($0.oldestMilliseconds) / 1000)) } }
    },
    ofWebhook(
      "webhook_enabled", { $0.isEnabled ? 1 : 0 },
      "0 where its receiver has answered 410, or the journal can't be read."),
    ofWebhook("webhook_probing", { $0.isProbing ? 1 : 0 }, "1 where it seems to be down, and is asked one at a time."),
  ]

  /// A sample for each outcome of a webhook or stream.
  static func outcomes(of name: String, _ counts: [(outcome: String, count: UInt64)]) -> [Sample] {
    counts.map { ("", "\(name)\",outcome=\"\($0.outcome)", .count($0.count)) }
  }

  private static func ofWebhook(
    _ name: String, _ read: @escaping @Sendable (WebhookFigures) -> UInt64, _ help: String
  ) -> Metric {
    let isTime = name.hasSuffix("_seconds_total")
    return Metric(name: name, label: "webhook", help: help) { reading in
      reading.webhooks.map { hooks in
        hooks.map { hook in
          let number = read(hook)
          return ("", hook.name, isTime ? .seconds(Double(number) / 1e9) : .count(number))
        }
      }
    }
  }
}
