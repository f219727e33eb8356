// Values that a hub draws at random at each start of its process.
import HubBytes
import HubCore
import HubMessages
import HubRuntime
import HubSystem

/// The random values of one run.
struct Incarnation: Sendable {
  let epoch: InlineText
  let seed: UInt64
  let pseudonymKey: SipKey

  init() {
    var random = SystemRandomNumberGenerator()
    epoch = InlineText(String(random.next(), radix: 36)) ?? InlineText()
    seed = random.next()
    pseudonymKey = SipKey(random.next(), random.next())
  }

  func makeHub(_ configuration: ServerConfiguration, now: ClockReading) -> Hub {
    Hub(
      limits: configuration.limits.hub, timings: configuration.timings, sampling: configuration.sampling, epoch: epoch,
      seed: seed, pseudonymKey: configuration.pseudonymKey, drawnKey: pseudonymKey,
      outlets: configuration.outlets,
      now: Moment(now))
  }
}
