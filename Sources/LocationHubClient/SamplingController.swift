// How often this driver's fixes are wanted: the policy's result from the phone, the trip and the hub's advice. The
// app's calls read it on their own threads, before anything is queued; the client's thread sizes batches by it.
import HubClientCore
import HubMessages
import Synchronization

/// Settings for the phone's location service, the present ones first. A slow reader gets the newest.
public typealias SamplingAdvice = Latest<LocationWish>

/// The present settings, and the last fix sent.
final class SamplingController: Sendable {
  private struct State: Sendable {
    var gate = SamplingGate()
    var device = DeviceState()
    var advice: Sampling?
    var isWatched = false
    var trip: (id: Identifier, status: TripStatus)?
    var speed: Double?
  }

  /// The settings for the phone; `samplingAdvice` reads it.
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

  /// Whether to send a fix by the present interval. The first fix of a trip always is sent.
  func takes(_ fix: Fix, trip: Identifier?) -> Bool {
    state.withLock { state in
      if trip != state.trip?.id {
        state.gate.reset()
        // A driver whose fixes name a trip is on it, until the app reports its status.
        state.trip = trip.map { ($0, .accepted) }
      }
      state.speed = fix.speed ?? state.speed
      let wished = wish(state)
      wish.set(wished)
      return state.gate.takes(fix, by: Sampling(interval: wished.interval, minDistance: wished.distance))
    }
  }

  /// Seconds without a fix after which the position is repeated, since a stationary phone with a distance filter
  /// measures nothing. Nil where it moves, or measures by time.
  var silenceSeconds: Double? {
    state.withLock { state in
      let wished = wish(state)
      guard wished.distance > 0, !policy.isMoving(state.device, state.speed) else { return nil }
      return max(SamplingGate.silenceSeconds, SamplingGate.silenceIntervals * wished.interval)
    }
  }
}
