// A driver's answers to offered trips. They have a random generator of their own, so they do not change the drive.

/// How a driver answers offers: most are accepted after some seconds, some are declined, some are not seen.
public struct OfferAnswers: Sendable {
  /// What a driver does with an offer.
  public enum Answer: Sendable, Equatable {
    case accept, decline
    /// The driver does not look at the phone.
    case silence
  }

  static let acceptedFraction = 0.8
  static let declinedFraction = 0.12

  private var random: SplitMix64

  public init(seed: UInt64, index: Int) { random = SplitMix64(seed: seed, index: index, purpose: 0x0FFE2) }

  /// The next answer, and how many seconds it takes to give.
  public mutating func next() -> (answer: Answer, seconds: Double) {
    let chance = random.unit()
    let answer: Answer =
      chance < OfferAnswers.acceptedFraction
      ? .accept : chance < OfferAnswers.acceptedFraction + OfferAnswers.declinedFraction ? .decline : .silence
    return (answer, random.uniform(1, 7))
  }
}
