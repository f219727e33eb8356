// How often this driver's fixes are wanted: by the phone, the trip and the hub's advice, of which the policy makes one
// wish. The app's calls ask it on their own threads, before anything is queued, and the client's thread sizes batches
// by it.
import HubClientCore
import HubMessages
import Synchronization

/// What to ask of the phone's location service, the present wish first. A reader that is slow gets the newest.
public typealias SamplingAdvice = Latest<LocationWish>

/// The wish as it is, and what was sent last.
final class SamplingDesk: Sendable {
  private struct State: Sendable {
    var gate = SamplingGate()
    var device = DeviceState()
    var advice: Sampling?
    var isWatched = false
    var trip: (id: Identifier, status: TripStatus)?
    var speed: Double?
  }

  /// What the phone is to be asked for; `samplingAdvice` reads it.
  let wish: LatestSource<LocationWish>
  private let policy: PowerPolicy
  private let state = Mutex(State())

  init(_ policy: PowerPolicy) {
    self.policy = policy
    wish = LatestSource(policy.wish(DeviceState(), trip: nil, speed: nil, hub: nil))
  }

  private func change(_ change: (inout State) -> Void) {
    state.withLock { state in
      change(&state)
      wish.set(wish(state))
    }
  }

  private func wish(_ state: State) -> LocationWish {
    policy.wish(
      state.device, trip: state.trip?.status, speed: state.speed, hub: state.advice, isWatched: state.isWatched)
  }

  func report(_ device: DeviceState) { change { $0.device = device } }

  func advised(_ advice: Sampling?, isWatched: Bool) {
    change { state in
      state.advice = advice
      state.isWatched = isWatched
    }
  }

  func moved(_ trip: Identifier, to status: TripStatus) {
    change { state in
      guard state.trip == nil || state.trip?.id == trip else { return }
      state.trip = status.isFinal ? nil : (trip, status)
    }
  }

  /// Whether to send a fix: as often as is wished. The first of a trip always is: it is what others wait for.
  func takes(_ fix: Fix, trip: Identifier?) -> Bool {
    state.withLock { state in
      if trip != state.trip?.id {
        state.gate.reset()
        // Whoever names a trip in fixes is on it, until the app says how it goes on.
        state.trip = trip.map { ($0, .accepted) }
      }
      state.speed = fix.speed ?? state.speed
      let wished = wish(state)
      wish.set(wished)
      return state.gate.takes(fix, by: Sampling(interval: wished.interval, minDistance: wished.distance))
    }
  }

  /// After how many seconds without a fix the hub is told that the driver is where it was: the phone measures nothing
  /// while it stands, because only a distance is to wake it. Nil where it moves, or measures by time.
  var silenceSeconds: Double? {
    state.withLock { state in
      let wished = wish(state)
      guard wished.distance > 0, !policy.isMoving(state.device, state.speed) else { return nil }
      return max(SamplingGate.silenceSeconds, SamplingGate.silenceIntervals * wished.interval)
    }
  }
}
